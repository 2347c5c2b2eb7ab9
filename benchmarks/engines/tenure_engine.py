"""Tenure itself: a `tenure worker` as a user starts it. The caller waits for the results in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.engines.protocol import main
from benchmarks.workers import Worker
from benchmarks.workflows import app, take_steps
from tenure import __version__
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

CONCURRENCY = 100
PATIENCE = "180s"


class RunningTenure:
    async def run_workflows(self, steps: list[int]) -> None:
        handles = await app.enqueue_many([take_steps.call(count) for count in steps])
        # They run in the order in which they were enqueued, so few are left when the last one has ended.
        for handle in handles[-CONCURRENCY:]:
            await handle.result(PATIENCE)


class TenureEngine:
    version: str = __version__
    settings: str = f"concurrency={CONCURRENCY}, one process"

    async def prepare(self, dsn: str) -> None:
        await migrate(DatabaseTarget.at(dsn))

    @asynccontextmanager
    async def running(self, dsn: str) -> AsyncIterator[RunningTenure]:
        app.configure(dsn=dsn)
        with Worker(dsn, app="benchmarks.workflows:app", concurrency=CONCURRENCY):
            yield RunningTenure()
            await app.close()


if __name__ == "__main__":
    main(TenureEngine())
