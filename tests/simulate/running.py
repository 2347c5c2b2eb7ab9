"""The catalogue on a real worker: enqueue, wait until every job has ended, read the jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tenure import Call
from tenure.simulate.catalogue import app
from tests.waiting import until
from tests.worker.serving import serving

FINAL = ["completed", "failed", "canceled", "dead_letter"]


@contextmanager
def catalogue_on(dsn: str) -> Iterator[None]:
    """The catalogue has one app: inside this block it uses this database, as do the processes that its worker starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENURE_DSN", dsn)
        app.configure()  # clears the database it used before
        try:
            yield
        finally:
            app.close_sync()
            app.configure()


async def run_all(dsn: str, calls: Iterable[Call[Any]], *, within: float, concurrency: int = 20) -> list[SimpleNamespace]:
    """Runs these calls on a worker in this process until they end, and returns every job in the database."""
    async with serving(app, concurrency=concurrency):
        await app.enqueue_many(calls)
        try:
            await until(lambda: unfinished(dsn), is_={}, within=within)
        finally:
            await app.close()
    return found(dsn)


def unfinished(dsn: str) -> dict[str, int]:
    """The number of jobs that have not ended, by kind."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows = connection.execute("select kind, count(*) from tenure.all_jobs where state <> all(%s) group by 1", [FINAL])
        return dict(rows.fetchall())


def found(dsn: str) -> list[SimpleNamespace]:
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        return [SimpleNamespace(**row) for row in connection.execute("select * from tenure.all_jobs order by id")]
