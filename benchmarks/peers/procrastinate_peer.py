"""Procrastinate: one statement to claim a job and one to finish it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.payload import PAYLOAD
from benchmarks.peers.protocol import Described, await_go, main, print_age

CONCURRENCY = 20
BULK = 10_000


class ProcrastinateClient:
    def __init__(self, app: Any) -> None:
        self._noop, self._stamp = app.tasks["noop"], app.tasks["stamp"]

    async def enqueue_bulk(self, count: int) -> None:
        for first in range(0, count, BULK):
            await self._noop.batch_defer_async(*(dict(PAYLOAD) for _ in range(min(BULK, count - first))))

    async def enqueue_noop(self) -> None:
        await self._noop.defer_async(**PAYLOAD)

    async def enqueue_stamp(self, sent: int) -> None:
        await self._stamp.defer_async(**PAYLOAD, sent=sent)


class ProcrastinatePeer:
    described = Described(
        version=version("procrastinate"),
        settings=f"concurrency={CONCURRENCY}",
        left="select id from procrastinate_jobs where status in ('todo', 'doing') order by id desc limit 1",
        succeeded="select count(*) from procrastinate_jobs where status = 'succeeded'",
        own_processes=False,
    )

    async def prepare(self, dsn: str) -> None:
        async with _app(dsn).open_async() as app:
            await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def client(self, dsn: str) -> AsyncIterator[ProcrastinateClient]:
        async with _app(dsn).open_async() as app:
            yield ProcrastinateClient(app)

    async def work(self, dsn: str, processes: int) -> None:  # noqa: ARG002 - one process each
        async with _app(dsn).open_async() as app:
            await_go()
            await app.run_worker_async(concurrency=CONCURRENCY)


def _app(dsn: str) -> Any:
    app = App(connector=PsycopgConnector(conninfo=dsn, max_size=CONCURRENCY))

    @app.task(name="noop")
    async def noop(**given: Any) -> None:
        pass

    @app.task(name="stamp")
    async def stamp(**given: Any) -> None:
        print_age(given["sent"])

    return app


if __name__ == "__main__":
    main(ProcrastinatePeer())
