"""(q) A drain at default settings, by handlers on the event loop, in threads and in processes."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from benchmarks import drain
from benchmarks.drain import Drain, enqueue_all
from benchmarks.jobs import PAYLOAD
from benchmarks.server import Server
from benchmarks.workers import Worker
from tenure import Job, Tenure

WARMUP = 50  # jobs that start threads and processes

app = Tenure()


@app.job
async def on_loop(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    pass


@app.job
def in_thread(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    pass


@app.job(run_in="process")
def in_process(user_id: int, template: str, to: str, n: int, pad: str) -> None:
    pass


SHARES: tuple[tuple[str, Job[..., ..., Any, None], int], ...] = (
    ("default", on_loop, 2),
    ("threads", in_thread, 5),
    ("processes", in_process, 25),
)
"""The figure, the kind, and how many times fewer jobs it drains than others."""


def measure(server: Server, count: int) -> dict[str, Drain]:
    found = {}
    with server.database() as dsn, Worker(dsn, app="benchmarks.executors:app") as worker:
        for name, job, fewer in SHARES:
            enqueue_jobs = partial(_enqueue_jobs, job)
            drain.measure(server, dsn, worker, WARMUP, enqueue_jobs)
            found[name] = drain.measure(server, dsn, worker, count // fewer, enqueue_jobs)
    return found


async def _enqueue_jobs(job: Job[..., ..., Any, None], dsn: str, count: int) -> list[UUID]:
    app.configure(dsn=dsn)
    return await enqueue_all(app, (job.call(**PAYLOAD) for _ in range(count)))
