"""The PostgreSQL under measurement: our own with fsync on, or one that was given; a database of its own for each measurement."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from benchmarks import processes
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "min_wal_size": "2GB"}
WAL_FILES = 100  # of 16 MB: enough for the largest measurement


class Probe:
    """A connection that looks, and counts its own statements."""

    def __init__(self, dsn: str) -> None:
        self.statements = 0
        self._connection = psycopg.connect(dsn, autocommit=True, application_name="benchmark")

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        self.statements += 1
        cursor = self._connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, statement: str, *values: Any) -> Any:
        return self.rows(statement, *values)[0][0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class Server:
    def __init__(self, dsn: str, admin: Probe, *, ours: bool) -> None:
        self._dsn = dsn
        self.admin = admin
        self.ours = ours
        self._prefix = f"tenure_bench_{uuid4().hex[:8]}"
        self._count = 0
        self._postmaster = processes.parent_of(admin.one("select pg_backend_pid()"), "postgres")
        self._template = self._create("template1")
        asyncio.run(migrate(DatabaseTarget.at(self._at(self._template))))

    @contextmanager
    def database(self) -> Iterator[str]:
        """A migrated, empty database: its DSN."""
        with self._until_left(self._create(self._template)) as dsn:
            yield dsn

    @contextmanager
    def bare_database(self) -> Iterator[str]:
        """Without any table."""
        with self._until_left(self._create("template1")) as dsn:
            yield dsn

    @contextmanager
    def _until_left(self, name: str) -> Iterator[str]:
        try:
            yield self._at(name)
        finally:
            self._drop(name)

    def close(self) -> None:
        self._drop(self._template)

    def cpu(self) -> float | None:
        """Seconds used until now by all processes of the server, those that ended included. None if it runs elsewhere."""
        return None if self._postmaster is None else processes.cpu_of_family(self._postmaster)

    def wal(self) -> int:
        """Bytes written to the log until now."""
        return int(self.admin.one("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"))

    def commits(self, dsn: str) -> int:
        """Transactions ended in that database until now. Backends report late; those that have closed have reported."""
        name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        return int(self.admin.one("select xact_commit + xact_rollback from pg_stat_database where datname = %s", name))

    def checkpoint(self) -> None:
        with suppress(psycopg.errors.InsufficientPrivilege):
            self.admin.rows("checkpoint")

    @contextmanager
    def no_autovacuum(self) -> Iterator[None]:
        """Its statements would be counted with those that are measured. Only on a server that is ours to change."""
        if not self.ours:
            yield
            return
        self._set("alter system set autovacuum = off")
        try:
            yield
        finally:
            self._set("alter system reset autovacuum")

    def _set(self, statement: str) -> None:
        self.admin.rows(statement)
        self.admin.rows("select pg_reload_conf()")

    def _create(self, template: str) -> str:
        self._count += 1
        name = f"{self._prefix}_{self._count}"
        self.admin.rows(_named("create database {} template {}", name, template))
        return name

    def _drop(self, name: str) -> None:
        self.admin.rows(_named("drop database if exists {} with (force)", name))

    def _at(self, name: str) -> str:
        return make_conninfo(self._dsn, dbname=name)


@contextmanager
def open_server(dsn: str | None) -> Iterator[Server]:
    if dsn:
        with _serving(dsn, ours=False) as server:
            yield server
        return
    with tempfile.TemporaryDirectory(prefix="tenure-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # as root, the server's own account must pass through
        with EmbeddedServer(Path(folder, "home"), settings=SETTINGS) as embedded, _serving(embedded.dsn, ours=True) as server:
            _run_in(server.admin)
            yield server


def _run_in(admin: Probe) -> None:
    """A server in use writes its log into files that exist; a new one must create each of them first."""
    for _ in range(WAL_FILES):
        admin.rows("select pg_logical_emit_message(false, 'run in', ''), pg_switch_wal()")
    admin.rows("checkpoint")


@contextmanager
def _serving(dsn: str, *, ours: bool) -> Iterator[Server]:
    with Probe(dsn) as admin:
        server = Server(dsn, admin, ours=ours)
        try:
            yield server
        finally:
            server.close()


def _named(statement: str, *names: str) -> str:
    return sql.SQL(statement).format(*map(sql.Identifier, names)).as_string(None)
