"""(c) and (g): a backlog of jobs that do nothing, drained by a real worker.

The worker is up and idle and the queue is paused while the jobs are enqueued; the measured time begins when the queue is
resumed. The checkpoint stands before the enqueue: jobs that are drained as they come do not meet one in between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import UUID

from benchmarks.jobs import workload
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker
from tenure import Call, Tenure

POLL = 0.01  # seconds; the look is one probe of the primary key
TAIL = 5_000  # more than all children can have in flight when the last job is gone
SETTLE = 0.5  # seconds between the enqueue and the start, for the enqueuer to be gone
PATIENCE = 180.0
BULK = 50_000

Enqueue = Callable[[str, int], Coroutine[Any, Any, list[UUID]]]
"""`(dsn, count)`: enqueues `count` jobs in that database, and returns their ids in order."""


@dataclass(frozen=True)
class Drain:
    jobs: int
    seconds: float
    """From the first start to the last end, by the database's clock."""
    wall: float
    """From the resumption of the queue to the sight of its emptiness."""
    wal: int
    worker_cpu: float
    server_cpu: float | None
    commits_before: int

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


async def enqueue_jobs(dsn: str, count: int) -> list[UUID]:
    """No-op jobs by the product's own bulk call; their ids in order."""
    work = workload(dsn)
    return await enqueue_all(work.app, work.calls(count))


async def enqueue_all(app: Tenure, calls: Iterator[Call[Any]]) -> list[UUID]:
    ids: list[UUID] = []
    while handles := await app.enqueue_many(islice(calls, BULK)):
        ids += [handle.id for handle in handles]
    await app.close()
    return ids


def measure_alone(server: Server, count: int, *, children: int, concurrency: int) -> tuple[Drain, int]:
    """In a database of its own. Also gives the statements it took, counted until the worker has stopped: an idle
    backend reports late, one that has ended has reported."""
    with server.database() as dsn:
        with Worker(dsn, children=children, concurrency=concurrency) as worker:
            drained = measure(server, dsn, worker, count)
        return drained, server.commits(dsn) - drained.commits_before


def measure(server: Server, dsn: str, worker: Worker, count: int, enqueue: Enqueue = enqueue_jobs) -> Drain:
    """Other rows of the database are left as they are."""
    _pause(dsn)
    with Probe(dsn) as probe:
        mark = probe.one("select clock_timestamp()")
    server.checkpoint()
    ids = asyncio.run(enqueue(dsn, count))
    time.sleep(SETTLE)
    commits = server.commits(dsn)
    wal, worker_cpu, server_cpu = server.wal(), worker.cpu(), server.cpu()
    with Probe(dsn) as probe:
        began = time.perf_counter()
        _resume(probe)
        await_gone(probe, worker, ids)
        wall = time.perf_counter() - began
        ended_cpu = server.cpu()
        used = worker.cpu() - worker_cpu, None if ended_cpu is None or server_cpu is None else ended_cpu - server_cpu
        written = server.wal() - wal
        own = probe.statements
    with Probe(dsn) as probe:
        seconds = _seconds(probe, count, mark)
        own += probe.statements
    return Drain(count, seconds, wall, written, *used, commits + own)


def await_gone(probe: Probe, worker: Worker, ids: list[UUID]) -> None:
    """Until all of them have left the live jobs. The last one goes among the last."""
    deadline = time.monotonic() + PATIENCE
    for some in ([ids[-1]], ids[-TAIL:]):
        while probe.one("select count(*) from tenure.jobs where id = any(%s)", some):
            worker.demand_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"jobs are left after {PATIENCE:.0f} s; the worker said:\n{worker.said}")
            time.sleep(POLL)


def _seconds(probe: Probe, count: int, mark: object) -> float:
    statement = """select count(*), extract(epoch from max(finished_at) - min(started_at))::float8
                     from tenure.history where enqueued_at >= %s"""
    [(finished, seconds)] = probe.rows(statement, mark)
    if finished != count:
        raise RuntimeError(f"{count} jobs were enqueued, but history has {finished}")
    return float(seconds)


def _pause(dsn: str) -> None:
    with Probe(dsn) as probe:
        probe.rows(
            "insert into tenure.queues (name, paused_at) values ('default', now())"
            " on conflict (name) do update set paused_at = excluded.paused_at"
        )


def _resume(probe: Probe) -> None:
    probe.rows("update tenure.queues set paused_at = null where name = 'default'")
    probe.rows("select pg_notify('tenure', 'jobs default')")
