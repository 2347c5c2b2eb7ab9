"""Databases for tests of users' code: copied from a migrated template, with a clock that can be set, emptied between tests."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure.model.errors import ConfigError
from tenure.store.migration_files import migration_sql
from tenure.store.migrator import migrate
from tenure.store.statements import in_schema
from tenure.store.target import DatabaseTarget

PREFIX = "tenure_test_"
FILE_COPY = 150000
"""Since this version of PostgreSQL a copy is written to the WAL page by page, unless `strategy file_copy` is given: that costs
several times as much."""


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The DSN of a new database on the server, migrated and empty. It is dropped at the end, with all its sessions."""
    name = f"{PREFIX}{uuid4().hex[:12]}"
    with _connected(server) as connection:
        template = _template(connection, server)
        fast = sql.SQL(" strategy file_copy" if connection.info.server_version >= FILE_COPY else "")
        connection.execute(
            sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)) + fast
        )
        # Settings of a database are not copied. Without "$user": the role may have the name of Tenure's schema.
        connection.execute(
            sql.SQL("alter database {} set search_path = public, tenure_clock, pg_catalog").format(sql.Identifier(name))
        )
    try:
        yield _url(server, name)
    finally:
        with _connected(server) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def prepare(database: DatabaseTarget) -> None:
    """Migrates a test database of the caller's own, and gives it a clock."""
    check_is_for_tests(database)
    _migrated(database)


def clear(database: DatabaseTarget) -> list[str]:
    """Empties Tenure's tables. Returns a sentence about each session whose open transaction has written to them: what it wrote is
    neither seen nor deleted."""
    check_is_for_tests(database)
    with _connected(database.dsn) as connection:
        connection.execute(_clear_sql(database.schema))
        found = connection.execute(_script("find_open_writers", database.schema)).fetchall()
    return [f"session {pid} ({name!r}) has left a transaction open for {seconds:.0f} s" for pid, name, seconds in found]


def empty(database: DatabaseTarget) -> None:
    """The same for a database without a clock of its own."""
    check_is_for_tests(database)
    with _connected(database.dsn) as connection:
        connection.execute(in_schema("; ".join(_deletions()), database.schema).encode())


def set_ahead(database: DatabaseTarget, by: timedelta) -> datetime:
    """Sets the clock of the database ahead, and returns its time."""
    with _connected(database.dsn) as connection:
        connection.execute("update tenure_clock.clock set ahead = ahead + %s", [by])
        [(now,)] = connection.execute("select tenure_clock.clock_timestamp()").fetchall()
        return _a_time(now)


def clock_of(database: DatabaseTarget) -> datetime:
    with _connected(database.dsn) as connection:
        [(now,)] = connection.execute("select tenure_clock.clock_timestamp()").fetchall()
        return _a_time(now)


def check_is_for_tests(database: DatabaseTarget) -> None:
    """Its jobs are deleted and its clock is changed: a mistake in a DSN must not do that to a database with real jobs."""
    name = str(conninfo_to_dict(database.dsn).get("dbname") or "")
    if "test" not in name:
        raise ConfigError(
            f"the database {name!r} may contain real jobs, which a test would delete: use a database with 'test' in its name"
        )


def _template(connection: psycopg.Connection[Any], server: str) -> str:
    """The name of a migrated database, kept for later runs. Usually made once, however many processes ask at the same time."""
    version = hashlib.sha256((migration_sql("tenure") + _script("clock", "tenure")).encode()).hexdigest()
    name = f"tenure_template_{version[:12]}"
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", [int(version[:15], 16)])
        if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone():
            return name
        # On connections of its own: `create database` cannot run in a transaction, and this one holds the lock.
        with _connected(server) as other:
            draft = f"{name}_{uuid4().hex[:8]}"
            other.execute(sql.SQL("create database {}").format(sql.Identifier(draft)))
            _migrated(DatabaseTarget.at(make_conninfo(server, dbname=draft)))
            # Renamed when it is complete: a process that dies half way leaves no template that looks ready.
            try:
                other.execute(sql.SQL("alter database {} rename to {}").format(sql.Identifier(draft), sql.Identifier(name)))
            except errors.DuplicateDatabase:  # by a process whose DSN names another database, where our lock is not seen
                other.execute(sql.SQL("drop database {}").format(sql.Identifier(draft)))
    return name


def _migrated(database: DatabaseTarget) -> None:
    # In a thread of its own: the caller may be inside an event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, migrate(database)).result()
    with _connected(database.dsn) as connection:
        connection.execute(_script("clock", database.schema))


@cache
def _clear_sql(schema: str) -> Any:
    return in_schema("; ".join([*_deletions(), "update tenure_clock.clock set ahead = '0'"]), schema)


def _deletions() -> list[str]:
    """Deletes instead of truncating: of small tables it takes a tenth of the time. Only what our migrations create: the schema
    may contain tables of the user's."""
    tables = re.findall(r"^create table (?:if not exists )?(tenure\.\w+) \(", migration_sql("tenure"), re.MULTILINE)
    kept = {"tenure.migrations", "tenure.limit_changes"}
    texts = [f"delete from {table}" for table in dict.fromkeys(tables) if table not in kept]  # noqa: S608 - our own names
    return [*texts, "update tenure.limit_changes set version = version + 1"]


def _url(server: str, name: str) -> str:
    """As a URL, the only form that SQLAlchemy and asyncpg understand."""
    given = {key: str(value) for key, value in conninfo_to_dict(server).items() if value is not None and key != "dbname"}
    user, password = (quote(given.pop(key, ""), safe="") for key in ("user", "password"))
    account = f"{user}:{password}@" if password else f"{user}@" if user else ""
    return f"postgresql://{account}/{quote(name)}?{urlencode(given)}"


def _script(name: str, schema: str) -> Any:
    return in_schema(files(__package__).joinpath(f"{name}.sql").read_text("utf-8"), schema)


@contextmanager
def _connected(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def _a_time(value: Any) -> datetime:
    assert isinstance(value, datetime)
    return value
