"""Continuous load at half of what the machine can do: does anything grow or become slower?"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from benchmarks import drain
from benchmarks.jobs import Workload, workload
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker

PEAK_JOBS = 100_000
TICK = 0.1  # seconds between two batches, and between two jobs that are timed
MOST_WINDOWS = 60  # samples in the whole time
SHORTEST_WINDOW = 5.0  # seconds

SIZES = "select pg_relation_size('tenure.jobs'), pg_indexes_size('tenure.jobs')"
ENDED = "select coalesce(sum(n_tup_ins), 0)::bigint from pg_stat_user_tables where schemaname = 'tenure' and relname ~ '^history'"
AGES = """select (output::text::bigint - (input ->> 'sent')::bigint) / 1e6::float8
            from tenure.history where kind = 'stamp' and finished_at >= now() - make_interval(secs => %s)"""


@dataclass(frozen=True)
class Sample:
    minutes: float
    rate: float
    """Jobs completed per second."""
    p50: float
    p99: float
    """Milliseconds from enqueue to start, of single jobs beside the load."""
    table: int
    indexes: int
    """Bytes of `jobs` and of its indexes."""


def peak(server: Server) -> float:
    """Jobs a second that are enqueued and run at the same time."""
    with server.database() as dsn, Worker(dsn, concurrency=400) as worker:
        began = time.perf_counter()
        ids = asyncio.run(drain.enqueue_jobs(dsn, PEAK_JOBS))
        with Probe(dsn) as probe:
            drain.await_gone(probe, worker, ids)
        return PEAK_JOBS / (time.perf_counter() - began)


def run(server: Server, rate: float, seconds: float) -> list[Sample]:
    with server.database() as dsn, Worker(dsn, concurrency=400) as worker:
        return asyncio.run(_loaded(dsn, worker, rate, seconds))


async def _loaded(dsn: str, worker: Worker, rate: float, seconds: float) -> list[Sample]:
    work = workload(dsn)
    ends = time.perf_counter() + seconds
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_enqueue(work, rate, ends))
        tasks.create_task(_stamp(workload(dsn), ends))
        samples = [sample async for sample in _samples(dsn, worker, seconds)]
    await work.app.close()
    return samples


async def _enqueue(work: Workload, rate: float, ends: float) -> None:
    began, sent = time.perf_counter(), 0
    while (now := time.perf_counter()) < ends:
        wanted = round((now - began) * rate)
        await work.app.enqueue_many(work.calls(wanted - sent))
        sent = wanted
        await asyncio.sleep(TICK)


async def _stamp(work: Workload, ends: float) -> None:
    while time.perf_counter() < ends:
        await work.stamp.enqueue(sent=time.time_ns())
        await asyncio.sleep(TICK)
    await work.app.close()


async def _samples(dsn: str, worker: Worker, seconds: float) -> AsyncIterator[Sample]:
    windows = max(1, min(MOST_WINDOWS, int(seconds / SHORTEST_WINDOW)))
    window = seconds / windows
    began = time.perf_counter()
    with Probe(dsn) as probe:
        at, ended = began, int(probe.one(ENDED))
        for number in range(1, windows + 1):
            await asyncio.sleep(began + number * window - time.perf_counter())
            worker.demand_alive()
            ages = [float(age) for (age,) in await asyncio.to_thread(probe.rows, AGES, window)]
            [(table, indexes)] = probe.rows(SIZES)
            now, count = time.perf_counter(), int(probe.one(ENDED))
            cuts = statistics.quantiles(ages, n=100, method="inclusive")
            yield Sample((now - began) / 60, (count - ended) / (now - at), cuts[49], cuts[98], table, indexes)
            at, ended = now, count
