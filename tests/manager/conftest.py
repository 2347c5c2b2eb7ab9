"""Real workers with the app of `jobs_for_tests.py`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.manager.worker_helpers import Queue, RunLog, Sql
from tests.processes import WorkerProcess, worker_process


@pytest.fixture
def run_log(project: Path) -> RunLog:
    shutil.copy(Path(__file__).with_name("jobs_for_tests.py"), project / "jobs.py")
    return RunLog(project)


@pytest.fixture
def queue(sql: Sql, dsn: str) -> Queue:
    return Queue(sql, dsn)


@pytest.fixture
def start(project: Path, dsn: str, run_log: RunLog) -> Iterator[Callable[..., WorkerProcess]]:
    """Starts `tenure worker`s; those that still run at the end are killed."""
    with ExitStack() as stack:
        yield lambda *options, **more: stack.enter_context(worker_process(project, more.pop("dsn", dsn), *options, **more))


@pytest.fixture
def second_dsn(server_dsn: str, template: str) -> Iterator[str]:
    """One more database, for a fleet beside the first."""
    name = f"second_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")
        yield make_conninfo(server_dsn, dbname=name)
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def second_queue(second_dsn: str) -> Iterator[Queue]:
    with psycopg.connect(second_dsn, autocommit=True) as connection:

        def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

        yield Queue(run, second_dsn)
