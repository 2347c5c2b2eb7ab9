"""A worker for the jobs of `handlers.py` that serves a whole module of tests: its processes are started once, not for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import pytest_asyncio
from psycopg.conninfo import make_conninfo

from tenure import Handle, JobFailed, Tenure
from tests.store.database import Database
from tests.worker import handlers
from tests.worker.serving import serving


@dataclass
class SharedWorker:
    app: Tenure
    database: Database

    def sql(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.database.sql(text, *values)

    def incidents(self, handle: Handle[Any]) -> list[str]:
        """What came between, in order."""
        return [row[0] for row in self.sql("select what from tenure.incidents where job_id = %s order by at", handle.id)]

    def lines(self, handle: Handle[Any]) -> list[dict[str, Any]]:
        """What its runs logged, in order."""
        rows = self.sql("select lines from tenure.logs where job_id = %s order by fence, first_line", handle.id)
        return [line for (lines,) in rows for line in lines]

    @asynccontextmanager
    async def another_worker(self, **options: Any) -> AsyncIterator[Any]:
        async with serving(self.app, **options) as worker:
            yield worker


async def failure(handle: Handle[Any]) -> JobFailed:
    """How the job failed."""
    with pytest.raises(JobFailed) as caught:
        await handle.result("30s")
    return caught.value


@pytest.fixture(scope="module")
def shared_worker_dsn(server_dsn: str, template: str) -> Iterator[str]:
    name = f"shared_test_{uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}")
        yield make_conninfo(server_dsn, dbname=name)
        admin.execute(f"drop database {name} with (force)")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_worker(shared_worker_dsn: str) -> AsyncIterator[SharedWorker]:
    with pytest.MonkeyPatch.context() as patch, Database(shared_worker_dsn) as database:
        patch.setenv("TENURE_DSN", shared_worker_dsn)  # for the app, here and in the processes of its jobs
        handlers.app.configure()
        async with serving(handlers.app, queues=["default"]):
            yield SharedWorker(handlers.app, database)
        await handlers.app.close()
