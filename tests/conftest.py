"""Real PostgreSQL for every test: an embedded server for the whole run, a database of its own for each test."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg.conninfo import make_conninfo

from tenure import Tenure
from tenure.client.portal import Portal
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget
from tests.planted_secrets import PASSWORD, watching_logs
from tests.system_packages import install_missing
from tests.waiting import until

HOME = "TENURE_TEST_HOME"

# The duration of an example has no meaning on a shared machine.
settings.register_profile("tenure", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tenure")


def pytest_configure(config: pytest.Config) -> None:
    """The first process makes the folder of the server that all test processes share."""
    # Tests start hundreds of interpreters. Without cached bytecode, each of them would compile all of `tenure` again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell starts jobs in the background. The commands under test would inherit it, and ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if HOME not in os.environ:
        install_missing()
        os.environ[HOME] = tempfile.mkdtemp(prefix="tenure-tests-", dir=_in_memory())
        # As root the server runs under another account, which must be able to pass.
        Path(os.environ[HOME]).chmod(0o711)
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(HOME), ignore_errors=True))


def _in_memory() -> str | None:
    """Where PostgreSQL makes the files of thousands of databases in less time, if there is room for them."""
    shared = Path("/dev/shm")
    has_room = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free >= 4 << 30
    return str(shared) if has_room else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes 750,000 objects that stay to the end. A search for garbage among them takes half a second each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hostile handlers raise text that is not UTF-8; it is logged, and the report must reach the first process all the same."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """`TENURE_TEST_DSN` (its user must be allowed to create databases), or an embedded server shared by all test processes."""
    if given := os.environ.get("TENURE_TEST_DSN"):
        yield given
        return
    with EmbeddedServer(Path(os.environ[HOME]) / "server", durable=False) as server:
        yield server.dsn


@pytest.fixture(scope="session")
def template(server_dsn: str) -> Iterator[str]:
    """A migrated database that is copied for each test: what follows `create database ... template`."""
    name = f"template_{uuid4().hex[:12]}"
    version = _admin(server_dsn, f"create database {name}")
    asyncio.run(migrate(DatabaseTarget.at(make_conninfo(server_dsn, dbname=name))))
    # Since PostgreSQL 15 a copy is written to the WAL page by page otherwise, which takes several times as much CPU.
    yield f"{name} strategy file_copy" if version >= 150000 else name
    _admin(server_dsn, f"drop database {name} with (force)")


@pytest.fixture(scope="session")
def administrator(server_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """One connection makes and drops the databases of all tests: opening one takes half as long as dropping a database."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def dsn(administrator: psycopg.Connection[Any], server_dsn: str, template: str, threads_end: None) -> Iterator[str]:
    """A database of this test's own, migrated and empty."""
    name = f"test_{uuid4().hex[:12]}"
    administrator.execute(f"create database {name} template {template}")
    yield make_conninfo(server_dsn, dbname=name, password=PASSWORD)
    administrator.execute(f"drop database {name} with (force)")


@pytest.fixture(autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """In any test: no record of ours contains the planted password, the payload or a token."""
    with watching_logs() as found:
        yield
    assert found == []


@pytest.fixture
def database_target(dsn: str) -> DatabaseTarget:
    return DatabaseTarget.at(dsn)


@pytest.fixture
def threads_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Event loops that a test opened for synchronous calls end with it: they would connect to the shared database again."""
    opened: set[Portal] = set()
    open_ = Portal._open

    def noting(portal: Portal) -> asyncio.AbstractEventLoop:
        opened.add(portal)
        return open_(portal)

    monkeypatch.setattr(Portal, "_open", noting)
    yield
    for portal in opened:
        portal.close()


@pytest.fixture
def app(dsn: str) -> Tenure:
    return Tenure(dsn)


@pytest.fixture
def sql(dsn: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Runs SQL beside the product, on a connection of the test's own: `sql("select ...", value, ...)`."""
    with psycopg.connect(dsn, autocommit=True) as connection:

        def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


@pytest.fixture
def states(sql: Callable[..., list[tuple[Any, ...]]]) -> Callable[[], dict[str, int]]:
    """How many jobs are in which state."""
    return lambda: dict(sql("select state, count(*) from tenure.all_jobs group by state"))


@pytest.fixture
def eventually() -> Callable[..., Awaitable[Any]]:
    return until


def _admin(dsn: str, statement: str) -> int:
    """Runs the statement and returns the version of the server."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)
        return connection.info.server_version


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for an app that worker processes load."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
