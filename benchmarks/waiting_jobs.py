"""(z) A drain of jobs that wait for a millisecond, as a call to a fast service does, with few and with many slots."""

from __future__ import annotations

import asyncio
from uuid import UUID

from benchmarks import drain
from benchmarks.drain import Drain, enqueue_all
from benchmarks.jobs import PAYLOAD
from benchmarks.server import Server
from benchmarks.workers import Worker
from tenure import Tenure

SLOTS = (16, 64, 256)
WAIT = 0.001  # seconds

app = Tenure()


@app.job
async def call_service(user_id: int, template: str, to: str, n: int, pad: str) -> None:  # noqa: ARG001 - an ordinary payload
    await asyncio.sleep(WAIT)


def measure(server: Server, count: int) -> dict[int, Drain]:
    """By the number of slots of one worker process."""
    found = {}
    for slots in SLOTS:
        with server.database() as dsn, Worker(dsn, app="benchmarks.waiting_jobs:app", concurrency=slots) as worker:
            found[slots] = drain.measure(server, dsn, worker, count, _enqueue_jobs)
    return found


async def _enqueue_jobs(dsn: str, count: int) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (call_service.call(**PAYLOAD) for _ in range(count)))
