"""Chancy: claims in batches and writes outcomes once per interval."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from chancy import Chancy, Job, Queue, Worker

from benchmarks.payload import PAYLOAD
from benchmarks.peers.protocol import Described, await_go, main, print_age

CONCURRENCY = 1_000
FLUSH = 0.1  # seconds between two writes of outcomes; the default is 1
MODULE = "benchmarks.peers.chancy_peer"


async def noop(**given: Any) -> None:
    pass


async def stamp(**given: Any) -> None:
    print_age(given["sent"])


class ChancyClient:
    def __init__(self, chancy: Any) -> None:
        self._chancy = chancy

    async def enqueue_bulk(self, count: int) -> None:
        jobs = [Job(func=f"{MODULE}.noop", kwargs=dict(PAYLOAD)) for _ in range(count)]
        async for _ in self._chancy.push_many(jobs):
            pass

    async def enqueue_noop(self) -> None:
        await self._chancy.push(Job(func=f"{MODULE}.noop", kwargs=dict(PAYLOAD)))

    async def enqueue_stamp(self, sent: int) -> None:
        await self._chancy.push(Job(func=f"{MODULE}.stamp", kwargs=PAYLOAD | {"sent": sent}))


class ChancyPeer:
    described = Described(
        version=version("chancy"),
        settings=f"async executor, concurrency={CONCURRENCY}, eager_polling, outcomes every {FLUSH} s, no log line per job",
        left="select id from chancy_jobs where state not in ('succeeded', 'failed') order by id desc limit 1",
        succeeded="select count(*) from chancy_jobs where state = 'succeeded'",
        own_processes=False,
    )

    async def prepare(self, dsn: str) -> None:
        queue = Queue(name="default", concurrency=CONCURRENCY, executor=Chancy.Executor.Async, eager_polling=True)
        async with _chancy(dsn) as chancy:
            await chancy.migrate()
            await chancy.declare(queue, upsert=True)

    @asynccontextmanager
    async def client(self, dsn: str) -> AsyncIterator[ChancyClient]:
        async with _chancy(dsn) as chancy:
            yield ChancyClient(chancy)

    async def work(self, dsn: str, processes: int) -> None:  # noqa: ARG002 - one process each
        async with _chancy(dsn) as chancy:
            await_go()
            worker = Worker(chancy)
            worker.send_outgoing_interval = FLUSH
            async with worker:
                await worker.wait_for_shutdown()


def _chancy(dsn: str) -> Any:
    log = logging.getLogger("chancy")
    log.setLevel(logging.WARNING)
    return Chancy(dsn, log=log)


if __name__ == "__main__":
    main(ChancyPeer())
