"""(i) The drain of jobs that are more like real ones: a model in, a model out, and a middleware around each of them.

The worker is a `tenure worker` as it is started by default, so its logging is the default one too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from benchmarks import drain
from benchmarks.drain import Drain, enqueue_all
from benchmarks.jobs import PAYLOAD
from benchmarks.server import Server
from benchmarks.workers import Worker
from tenure import CallNext, Context, Tenure


class Mail(BaseModel):
    user_id: int
    template: str
    to: str
    n: int
    pad: str


class Sent(BaseModel):
    to: str
    size: int
    accepted: bool = True


app = Tenure()
spent = defaultdict[str, float](float)


@app.middleware
async def count_seconds(ctx: Context, call_next: CallNext) -> Any:
    began = time.perf_counter()
    try:
        return await call_next()
    finally:
        spent[ctx.kind] += time.perf_counter() - began


@app.job
async def deliver(mail: Mail) -> Sent:
    return Sent(to=mail.to, size=mail.n)


def measure(server: Server, count: int, concurrency: int) -> Drain:
    with server.database() as dsn, Worker(dsn, app="benchmarks.typed:app", concurrency=concurrency) as worker:
        return drain.measure(server, dsn, worker, count, _enqueue_jobs)


async def _enqueue_jobs(dsn: str, count: int) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (deliver.call(Mail(**PAYLOAD)) for _ in range(count)))
