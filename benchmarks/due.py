"""(n) How late a delayed job starts, and whether a hundred thousand that are due at once hold up a job that is due now."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from benchmarks.jobs import PAYLOAD, workload
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker
from tenure.store.target import DatabaseTarget

SHORTEST, LONGEST = 1.0, 6.0  # seconds of delay
URGENT = 40  # jobs that are due now, while the others are promoted
AHEAD = 2.0  # seconds until the flood


@dataclass(frozen=True, slots=True)
class Due:
    late: list[float]
    """Milliseconds from its time to its start, of each delayed job."""
    promoted: float
    """A second, of the flood."""
    urgent: list[float]
    """Milliseconds from enqueue to start, of jobs enqueued meanwhile."""


def measure(server: Server, delayed: int, flood: int) -> Due:
    with server.database() as dsn, Worker(dsn), Probe(dsn) as probe:
        asyncio.run(_delayed(dsn, delayed))
        _await(probe, "select count(*) from tenure.history", delayed)
        late = probe.rows(
            "select extract(epoch from started_at - run_at)::float8 * 1000 from tenure.history where run_at is not null"
        )
        probe.rows("delete from tenure.history")
        asyncio.run(_flood(dsn, probe, flood))
        urgent = probe.rows(
            "select (output::text::bigint - (input ->> 'sent')::bigint) / 1e6::float8 from tenure.history where kind = 'stamp'"
        )
        [(seconds,)] = probe.rows(
            "select extract(epoch from max(started_at) - min(run_at))::float8 from tenure.history where kind = 'noop'"
        )
    return Due([row[0] for row in late], flood / seconds, [row[0] for row in urgent])


async def _delayed(dsn: str, count: int) -> None:
    work = workload(dsn)
    await asyncio.gather(*(work.noop.using(delay=random.uniform(SHORTEST, LONGEST)).enqueue(**PAYLOAD) for _ in range(count)))
    await work.app.close()


async def _flood(dsn: str, probe: Probe, count: int) -> None:
    """All due in the same moment, of low priority; jobs that are due now come in between."""
    work = workload(dsn)
    await work.app.enqueue_many([work.noop.using(delay="1h", priority="low").call(**PAYLOAD) for _ in range(count)])
    probe.rows("update tenure.jobs set run_at = now() + make_interval(secs => %s)", AHEAD)
    probe.rows("select pg_notify(%s, 'due')", DatabaseTarget.at(dsn).channel)
    await asyncio.sleep(AHEAD)
    for _ in range(URGENT):
        await work.stamp.enqueue(sent=time.time_ns())
        await asyncio.sleep(0.05)
    await work.app.close()
    _await(probe, "select count(*) from tenure.history", count + URGENT)


def _await(probe: Probe, statement: str, count: int) -> None:
    deadline = time.monotonic() + 300
    while probe.one(statement) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all {count} jobs were done: {probe.one(statement)}")
        time.sleep(0.2)
