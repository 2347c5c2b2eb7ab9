"""Brings the schema to this code's version, one migration a transaction, one migrator at a time.

Files come in pairs. `NNNN_pre_name.sql` only adds, so that workers of the version before go on; it runs before the new
workers start. `NNNN_post_name.sql` takes away what only the old ones needed; it runs when they are gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

import psycopg
from psycopg import AsyncConnection

from tenure.model.errors import SchemaMismatch, StoreUnavailable
from tenure.store import faults
from tenure.store.link import connect
from tenure.store.place import Place
from tenure.store.statements import in_schema, quoted

Phase = Literal["pre", "post"]
_NAME = re.compile(r"(\d{4})_(pre|post)_(\w+)\.sql")


@dataclass(frozen=True, order=True)
class Migration:
    version: int
    phase: Phase
    name: str

    @property
    def label(self) -> str:
        return f"{self.version:04d}_{self.phase}_{self.name}"

    def sql(self, schema: str) -> str:
        text = files(__package__).joinpath("migrations", f"{self.label}.sql").read_text("utf-8")
        return in_schema(text, schema)


@cache
def migrations() -> tuple[Migration, ...]:
    """All of them, in the order they must run: pre before post, version by version."""
    names = [_NAME.fullmatch(entry.name) for entry in files(__package__).joinpath("migrations").iterdir()]
    found = [Migration(int(name[1]), cast("Phase", name[2]), name[3]) for name in names if name]
    return tuple(sorted(found, key=lambda m: (m.version, m.phase != "pre")))


def newest_version() -> int:
    return migrations()[-1].version


def ledger_sql(schema: str) -> str:
    return (
        f"create schema if not exists {quoted(schema)};\n"
        f"create table if not exists {quoted(schema)}.migrations (\n"
        "    version integer not null, phase text not null, name text not null,\n"
        "    applied_at timestamptz not null default clock_timestamp(), primary key (version, phase));\n"
    )


def migration_sql(schema: str, *, after: int = 0) -> str:
    """Everything as one script, for those who run their own migrations."""
    missing = [migration for migration in migrations() if migration.version > after]
    parts = [ledger_sql(schema), *(f"-- {m.label}\n{m.sql(schema)}\n{_entry(m, schema)};\n" for m in missing)]
    return "begin;\n" + "\n".join(parts) + "commit;\n"


async def migrate(place: Place, *, phase: Phase | None = None, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """Runs what is missing and gives the labels of what it ran."""
    ran: list[str] = []
    with _outages_told():
        async with await connect(place, "migrate") as connection:
            for migration in migrations():
                if phase in (None, migration.phase) and await _apply(connection, place.schema, migration):
                    tell(migration.label)
                    ran.append(migration.label)
    return ran


async def check_schema(place: Place) -> None:
    """Raises `SchemaMismatch` unless this code can work with the schema it meets."""
    with _outages_told():
        async with await connect(place, "migrate") as connection:
            applied = await _applied(connection, place.schema)
    needed = newest_version()
    reached = max((version for version, phase in applied if phase == "pre"), default=None)
    if reached is None or reached < needed:
        raise SchemaMismatch(reached, needed, "run `tenure migrate` with this version of Tenure, then start again")
    taken_away = max((version for version, phase in applied if phase == "post"), default=0)
    if taken_away > needed:
        raise SchemaMismatch(taken_away, needed, "upgrade Tenure here; the database has moved on to a newer version")


@contextmanager
def _outages_told() -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, OSError) as error:
        if faults.is_outage(error):
            raise StoreUnavailable(f"PostgreSQL cannot be reached: {str(error).strip()}") from error
        raise


async def _apply(connection: AsyncConnection[Any], schema: str, migration: Migration) -> bool:
    async with connection.transaction():
        # Held to the end of the transaction: a second migrator waits, then finds the work done. Safe behind poolers.
        await connection.execute("select pg_advisory_xact_lock(hashtextextended('tenure migrate ' || %s, 0))", [schema])
        await _run(connection, ledger_sql(schema))
        if (migration.version, migration.phase) in await _applied(connection, schema):
            return False
        # A migration that must wait for a lock must not make everyone else wait behind it.
        await connection.execute("set local lock_timeout = '5s'")
        await _run(connection, migration.sql(schema))
        await _run(connection, _entry(migration, schema))
    return True


async def _applied(connection: AsyncConnection[Any], schema: str) -> set[tuple[int, str]]:
    try:
        cursor = await connection.execute(f"select version, phase from {quoted(schema)}.migrations")  # noqa: S608
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return set()
    return set(await cursor.fetchall())


async def _run(connection: AsyncConnection[Any], script: str) -> None:
    # Without parameters the script goes by the simple protocol, which takes many statements at once.
    await connection.execute(script.encode(), prepare=False)


def _entry(migration: Migration, schema: str) -> str:
    values = f"{migration.version}, '{migration.phase}', '{migration.name}'"
    return f"insert into {quoted(schema)}.migrations (version, phase, name) values ({values})"  # noqa: S608


def roles_sql(schema: str, roles: Iterable[str] = ("worker", "enqueue", "read")) -> str:
    """Roles and grants: who may run jobs, who may only hand them in, who may only look."""
    name = quoted(schema)
    worker, enqueue, read = (quoted(f"{schema}_{role}") for role in roles)
    return (
        f"-- {worker} runs workers, {enqueue} may only hand in jobs, {read} may only look. Grant them to your login roles.\n"
        f"create role {worker} nologin;\ncreate role {enqueue} nologin;\ncreate role {read} nologin;\n"
        f"revoke all on schema {name} from public;\n"
        f"revoke all on all tables in schema {name} from public;\n"
        f"revoke all on all functions in schema {name} from public;\n"
        f"grant usage on schema {name} to {worker}, {enqueue}, {read};\n"
        f"grant select, insert, update, delete on all tables in schema {name} to {worker};\n"
        f"grant usage, select on all sequences in schema {name} to {worker};\n"
        f"grant execute on all functions in schema {name} to {worker};\n"
        f"grant execute on function {name}.enqueue(text, boolean, boolean) to {enqueue};\n"
        f"grant select on all tables in schema {name} to {read};\n"
        f"grant execute on function {name}.backlog(text, boolean) to {read};\n"
        f"alter default privileges in schema {name} grant select, insert, update, delete on tables to {worker};\n"
        f"alter default privileges in schema {name} grant select on tables to {read};\n"
    )
