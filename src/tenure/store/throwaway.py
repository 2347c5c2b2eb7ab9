"""A schema of its own for a measurement: new, and dropped at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

import psycopg
from psycopg import errors

from tenure.model.errors import ConfigError, StoreUnavailable
from tenure.store import faults
from tenure.store.connecting import connect
from tenure.store.migrator import migrate
from tenure.store.statements import quoted
from tenure.store.target import DatabaseTarget


@asynccontextmanager
async def throwaway_schema(database: DatabaseTarget, prefix: str) -> AsyncIterator[DatabaseTarget]:
    """A migrated, empty schema in the same database. No other schema is read or changed."""
    target = replace(database, schema=f"{prefix}_{uuid4().hex[:12]}")
    # Not `if not exists`: only what was created here is dropped at the end.
    await _run(target, f"create schema {quoted(target.schema)}")
    try:
        await migrate(target)
        yield target
    finally:
        await _run(target, f"drop schema {quoted(target.schema)} cascade")


async def _run(target: DatabaseTarget, text: str) -> None:
    """On a connection of its own: an earlier one may not have survived what happened in between."""
    try:
        async with await connect(target, "throwaway") as connection, connection.transaction():
            await connection.execute("set local statement_timeout = 0")  # a setting of the role must not keep the schema alive
            await connection.execute(text.encode(), prepare=False)
    except errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"PostgreSQL refused `{text}` ({faults.words(error).splitlines()[0]}): use a role that may create schemas in this "
            "database, or another database"
        ) from error
    except (psycopg.Error, OSError) as error:
        translated = faults.translated(error)
        if not isinstance(translated, StoreUnavailable):
            raise
        raise translated from error
