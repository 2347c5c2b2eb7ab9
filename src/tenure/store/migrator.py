"""Brings the schema to this code's version: one transaction per migration, one migrator at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, errors

from tenure.model.errors import SchemaMismatch, StoreUnavailable, TenureError
from tenure.store import faults, reports
from tenure.store.link import connect
from tenure.store.lock_holders import LockHolderWatch
from tenure.store.migration_files import (
    Migration,
    Phase,
    migration_sql,
    migrations,
    migrations_table_sql,
    newest_version,
    schema_sql,
)
from tenure.store.roles import roles_sql
from tenure.store.statements import quoted, statement
from tenure.store.target import DatabaseTarget

__all__ = [
    "Migration",
    "MigrationBlocked",
    "MigrationRefused",
    "MigrationState",
    "Phase",
    "apply_roles",
    "check_schema",
    "find_state",
    "migrate",
    "migration_sql",
    "migrations",
    "migrations_table_sql",
    "newest_version",
    "roles_sql",
]

log = logging.getLogger("tenure")

LOCK_TIMEOUT = 5.0
"""Seconds. A migration that waits for a lock must not make every other session wait behind it for longer."""

OUTSIDE_LOCK_TIMEOUT = 600.0
"""Seconds, outside a transaction. `create index concurrently` waits for the end of older transactions. No reader or writer waits
behind it, and every retry builds the index again, so it may wait longer."""

LOCK_POLL = 0.1
"""Seconds between two attempts to become the only migrator."""

ATTEMPTS = 5
"""How often a migration that could not get its locks is tried."""

# Settings of the role or the database must not abort a migration.
_PINNED = """
    set transaction isolation level read committed read write;
    set local statement_timeout = 0;
    set local lock_timeout = 0;
    set local idle_in_transaction_session_timeout = 0;
"""

Result = TypeVar("Result")
AppliedMigrations = dict[tuple[int, Phase], tuple[datetime, str]]
"""By version and phase: when it was applied, and its name."""


class MigrationBlocked(StoreUnavailable):
    """Another session holds a lock that a migration needs. Run it again."""


class MigrationRefused(TenureError):  # noqa: N818 - reads as the fact it states
    """The migration must not, or may not, be run now. Nothing of it was done."""


@dataclass(frozen=True, slots=True)
class MigrationState:
    label: str
    version: int
    phase: str
    applied_at: datetime | None
    known: bool = True
    """False: another version of Tenure has applied it."""


async def find_state(database: DatabaseTarget) -> list[MigrationState]:
    """Every migration, and when it was applied. Changes nothing."""
    with _named_errors():
        async with await connect(database, "migrate") as connection:
            recorded = await _insist(
                connection, database, "migrate --status", lambda: _inspect(connection, database), log.warning
            )
    applied = {Migration(*key, name).label: (*key, at) for key, (at, name) in sorted(recorded.items())}
    ours = {migration.label for migration in migrations()}
    known = [MigrationState(m.label, m.version, m.phase, applied.get(m.label, (0, "", None))[2]) for m in migrations()]
    return known + [MigrationState(label, *entry, known=False) for label, entry in applied.items() if label not in ours]


async def migrate(
    database: DatabaseTarget,
    *,
    phase: Phase | None = None,
    force: bool = False,
    dry_run: bool = False,
    report: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = log.warning,
) -> list[str]:
    """Runs what is missing, and returns the labels of what it ran or would run.

    If nothing is missing, it only reads. What old workers need is not removed while they are alive, unless with `force`. An
    error of `report` or `warn`, such as that of a closed pipe, is raised after all migrations have run.
    """
    ran: list[str] = []
    callbacks = _Callbacks()
    report, warn = callbacks.kept(report), callbacks.kept(warn)
    with _named_errors():
        async with await connect(database, "migrate") as connection:
            planned = partial(_planned, connection, database.schema, phase, force=force, warn=warn)
            for migration in await _insist(connection, database, "migrate", planned, warn):
                applied = partial(_apply, connection, database, migration)
                if dry_run or await _insist(connection, database, migration.label, applied, warn):
                    report(migration.label)
                    ran.append(migration.label)
    callbacks.check()
    return ran


async def apply_roles(database: DatabaseTarget) -> None:
    """Runs what `tenure sql --roles` prints."""
    with _named_errors():
        async with await connect(database, "migrate") as connection, connection.transaction():
            await _run(connection, _PINNED)
            try:
                await _run(connection, roles_sql(database.schema))
            except errors.InsufficientPrivilege as error:
                way_out = error.diag.message_hint or f"Run it as the owner of schema {database.schema!r}"
                raise MigrationRefused(f"{faults.words(error)}. {way_out}") from error


async def check_schema(database: DatabaseTarget) -> None:
    """Raises `SchemaMismatch` unless this code can work with the schema."""
    with _named_errors():
        async with await connect(database, "migrate") as connection:
            applied = await _applied_migrations(connection, database.schema)
            where = "" if applied else await _schemas_found(connection, database.schema)
    needed = newest_version()
    reached = max((version for version, phase in applied if phase == "pre"), default=None)
    if reached is None:
        raise SchemaMismatch(None, needed, where)
    if problem := _renamed_migration(applied, database.schema):
        raise SchemaMismatch(reached, needed, problem)
    if reached < needed:
        raise SchemaMismatch(reached, needed, "run `tenure migrate` with this version of Tenure, then start again")
    removed = max((version for version, phase in applied if phase == "post"), default=0)
    if removed > needed:
        raise SchemaMismatch(removed, needed, "upgrade Tenure here; the database is at a newer version")


# What is to be done


async def _planned(
    connection: AsyncConnection[Any], schema: str, phase: Phase | None, *, force: bool, warn: Callable[[str], None]
) -> list[Migration]:
    async with connection.transaction():
        await _limit_lock_waits(connection)
        return await _to_run(connection, schema, phase, force=force, warn=warn)


async def _inspect(connection: AsyncConnection[Any], database: DatabaseTarget) -> AppliedMigrations:
    async with connection.transaction():
        await _limit_lock_waits(connection)
        return await _applied_migrations(connection, database.schema)


async def _to_run(
    connection: AsyncConnection[Any], schema: str, phase: Phase | None, *, force: bool, warn: Callable[[str], None]
) -> list[Migration]:
    recorded = await _applied_migrations(connection, schema)
    if problem := _renamed_migration(recorded, schema):
        raise MigrationRefused(problem)
    applied = set(recorded)
    missing = [m for m in migrations() if m.key not in applied and phase in (None, m.phase)]
    posts = [m for m in missing if m.phase == "post"]
    if not (applied and posts):
        return missing
    added = applied | {m.key for m in missing}
    if early := [m for m in posts if (m.version, "pre") not in added]:
        raise MigrationRefused(f"{early[0].label} needs {early[0].label.replace('post', 'pre', 1)}: run `--phase pre` first")
    old = await _old_workers(connection, schema, posts[-1].version)
    if not old:
        return missing
    problem = f"{old} still run code of an older version, which needs what {_labels(posts)} removes"
    if force:
        warn(f"{problem}; removed nevertheless, because --force was given")
        return missing
    if phase == "post":
        raise MigrationRefused(f"{problem}: replace or stop them first, then run this again (`--force` does not wait for that)")
    warn(f"{problem}: not removed yet. Run `tenure migrate --phase post` when they are gone")
    return [m for m in missing if m.phase == "pre"]


def _renamed_migration(recorded: AppliedMigrations, schema: str) -> str:
    """Empty, unless the schema was made by migrations that this code has under other names."""
    for ours in migrations():
        entry = recorded.get(ours.key)
        if entry is not None and entry[1] != ours.name:
            theirs = Migration(ours.version, ours.phase, entry[1])
            return (
                f"schema {schema!r} was made by a development version: it has migration {theirs.label}, this code has"
                f" {ours.label}. Save what you need of it, `drop schema {quoted(schema)} cascade`, then run `tenure migrate`"
            )
    return ""


async def _old_workers(connection: AsyncConnection[Any], schema: str, version: int) -> str:
    """Who they are; empty: there are none."""
    query = reports.find_old_workers(version)
    cursor = await connection.execute(statement(query.name, schema), query.values)
    found = await cursor.fetchall()
    shown = ", ".join(f"{name} ({code})" for name, code in found[:3]) + (", ..." if len(found) > 3 else "")
    return f"{len(found)} workers: {shown}" if found else ""


def _labels(given: list[Migration]) -> str:
    return ", ".join(migration.label for migration in given)


async def _applied_migrations(connection: AsyncConnection[Any], schema: str) -> AppliedMigrations:
    """When each migration was applied, and its name. Empty: the database has no Tenure schema."""
    name = quoted(schema)
    try:
        async with connection.transaction():  # or a savepoint: the error must not end the transaction of the caller
            cursor = await connection.execute(f"select version, phase, applied_at, name from {name}.migrations")  # noqa: S608
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return {}
    return {(version, phase): (at, label) for version, phase, at, label in await cursor.fetchall()}


async def _schemas_found(connection: AsyncConnection[Any], schema: str) -> str:
    """The way out where the schema is missing: the DSN may name the wrong database."""
    cursor = await connection.execute(
        "select n.nspname from pg_namespace n"
        " where exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'migrations')"
        "   and exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'leases')"
    )
    others = [name for (name,) in await cursor.fetchall()]
    if not others:
        return faults.wrong_database(connection)
    where = f"which has Tenure in schema {', '.join(map(repr, others))}, not in {schema!r}"
    return f"{faults.named_database(connection)}, {where}: correct the setting `schema`"


# Doing it


async def _insist(
    connection: AsyncConnection[Any],
    database: DatabaseTarget,
    label: str,
    work: Callable[[], Awaitable[Result]],
    warn: Callable[[str], None],
) -> Result:
    """Tries again while another session holds a lock that the work needs."""
    watch = LockHolderWatch()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async with watch.over(database, connection):
                return await work()
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            problem = f"{label} needs a lock that {_named(watch)} holds"
            if attempt == ATTEMPTS:
                raise MigrationBlocked(
                    f"{problem}: tried {ATTEMPTS} times, and it was not applied; "
                    "wait for that session or end it (pg_terminate_backend), then run this again"
                ) from error
            warn(f"{problem}; trying again ({attempt + 1} of {ATTEMPTS})")
            await asyncio.sleep(attempt)
        except errors.InsufficientPrivilege as error:
            raise MigrationRefused(
                f"user {connection.info.user!r} may not run {label} ({faults.words(error).splitlines()[0]}): "
                f"run `tenure migrate` as the owner of schema {database.schema!r}"
            ) from error
    raise AssertionError


def _named(watch: LockHolderWatch) -> str:
    return " and ".join(map(str, watch.seen)) or "another session"


async def _apply(connection: AsyncConnection[Any], database: DatabaseTarget, migration: Migration) -> bool:
    """Whether it was run; False: another migrator was faster."""
    schema = database.schema
    if migration.outside:
        return await _apply_outside(connection, database, migration)
    async with connection.transaction():
        if not await _begin(connection, schema, migration):
            return False
        await _run(connection, migration.sql(schema))
        await _run(connection, migration.closing_sql(schema))
    return True


async def _apply_outside(connection: AsyncConnection[Any], database: DatabaseTarget, migration: Migration) -> bool:
    """Its statements one by one, while a transaction of another connection holds the lock of migrators.

    That transaction holds no snapshot while it is idle, so `create index concurrently` does not wait for it.
    """
    async with await connect(database, "migrate") as guard, guard.transaction():
        if not await _begin(guard, database.schema, migration):
            return False
        await _run(connection, f"set statement_timeout = 0; set lock_timeout = '{OUTSIDE_LOCK_TIMEOUT:g}s'")
        for text in migration.statements(database.schema):
            await _run(connection, text)
        await _run(guard, migration.closing_sql(database.schema))
    return True


async def _begin(connection: AsyncConnection[Any], schema: str, migration: Migration) -> bool:
    """Becomes the only migrator until the end of the transaction. False: the migration has been applied meanwhile."""
    await _run(connection, _PINNED)
    # Held to the end of the transaction, which is safe behind poolers. Polled, because a statement that waits for a lock holds a
    # snapshot, and `create index concurrently` of the migrator that has the lock would wait for that snapshot.
    while not await _locked(connection, schema):  # noqa: ASYNC110 - another process changes it
        await asyncio.sleep(LOCK_POLL)
    await _limit_lock_waits(connection)
    await _make_migrations_table(connection, schema)
    return migration.key not in await _applied_migrations(connection, schema)


async def _locked(connection: AsyncConnection[Any], schema: str) -> bool:
    # Without parameters, by the simple protocol: otherwise the portal would keep the snapshot until the next statement.
    name = schema.replace("'", "''")
    query = f"select pg_try_advisory_xact_lock(hashtextextended('tenure migrate {name}', 0))"
    return (await (await connection.execute(query.encode(), prepare=False)).fetchone()) == (True,)


async def _limit_lock_waits(connection: AsyncConnection[Any]) -> None:
    await _run(connection, f"set local lock_timeout = '{LOCK_TIMEOUT:g}s'")


async def _make_migrations_table(connection: AsyncConnection[Any], schema: str) -> None:
    """`create .. if not exists` needs the right to create even when there is nothing to do."""
    cursor = await connection.execute(
        "select to_regnamespace(%s) is null, to_regclass(%s) is null", [quoted(schema), f"{quoted(schema)}.migrations"]
    )
    no_schema, no_table = (await cursor.fetchone()) or (True, True)
    await _run(connection, (schema_sql(schema) if no_schema else "") + (migrations_table_sql(schema) if no_table else ""))


async def _run(connection: AsyncConnection[Any], script: str) -> None:
    # Without parameters the script goes by the simple protocol, which takes many statements at once.
    if script:
        await connection.execute(script.encode(), prepare=False)


class _Callbacks:
    """Functions of the caller. An error of theirs does not stop a migration, and is not translated into one of PostgreSQL."""

    def __init__(self) -> None:
        self._first_error: Exception | None = None

    def kept(self, callback: Callable[[str], None]) -> Callable[[str], None]:
        def call(words: str) -> None:
            try:
                callback(words)
            except Exception as error:  # noqa: BLE001 - raised by check()
                self._first_error = self._first_error or error

        return call

    def check(self) -> None:
        """Outside of the translation."""
        if self._first_error is not None:
            raise self._first_error


@contextmanager
def _named_errors() -> Iterator[None]:
    """Translates errors: a server that cannot be reached differs from one that refuses."""
    try:
        yield
    except (psycopg.Error, OSError) as error:
        translated = faults.translated(error)
        if not isinstance(translated, StoreUnavailable):
            raise
        raise translated from error
