"""A PostgreSQL of this room's own, to be stopped, killed and started again; databases and connections that outlive that."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tests.manager.worker_helpers import Queue, RunLog, Sql
from tests.processes import WorkerProcess, worker_process
from tests.waiting import until


class ServerControl:
    """Starts, stops and kills the server. The workers under test know nothing but a DSN."""

    def __init__(self, home: Path) -> None:
        self._server = EmbeddedServer(home, durable=True, settings={"max_connections": "60"})

    def start(self) -> str:
        return self._server.start().dsn

    def stop(self) -> None:
        """A fast shutdown, as `systemctl stop` does: connections are cut, nothing is lost."""
        self._server.stop()

    async def kill(self) -> None:
        """kill -9 of the postmaster: what was not on disk is gone."""
        pid = self._server.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not self._server.running)


@pytest.fixture(scope="module")
def server_control() -> Iterator[ServerControl]:
    # Not pytest's own folder: as root the server's account cannot reach that.
    folder = Path(tempfile.mkdtemp(prefix="outages-"))
    folder.chmod(0o711)
    server_control = ServerControl(folder / "home")
    try:
        yield server_control
    finally:
        server_control.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def dsn(server_control: ServerControl) -> Iterator[str]:
    """A database of this test's own on the server that is about to fail."""
    server, name = server_control.start(), f"test_{uuid4().hex[:12]}"
    admin(server, f"create database {name}")
    asyncio.run(migrate(DatabaseTarget.at(make_conninfo(server, dbname=name))))
    yield make_conninfo(server, dbname=name)
    server = server_control.start()
    admin(server, "alter system reset all")
    admin(server, "select pg_reload_conf()")
    admin(server, f"drop database {name} with (force)")


def admin(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
def sql(dsn: str) -> Sql:
    """A new connection each time: the server comes and goes. Never waits for a standby."""

    def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(dsn, autocommit=True, options="-c synchronous_commit=local") as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture
def queue(sql: Sql, dsn: str) -> Queue:
    return Queue(sql, dsn)


@pytest.fixture
def run_log(project: Path) -> RunLog:
    shutil.copy(Path(__file__).parent.parent / "manager" / "jobs_for_tests.py", project / "jobs.py")
    return RunLog(project)


@pytest.fixture
def start(project: Path, dsn: str, run_log: RunLog) -> Iterator[Callable[..., WorkerProcess]]:
    with ExitStack() as stack:
        yield lambda *options, **more: stack.enter_context(worker_process(project, dsn, *options, **more))
