"""What `tenure bench` measures: enqueuing, waking an idle worker, and draining, with jobs that do nothing.

The jobs to drain are in a queue of their own, which is paused until then, so that the worker is idle while wake-ups are measured.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from tenure import Call, Tenure
from tenure.client.client import Client
from tenure.model.states import FINISHED
from tenure.store import reports
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget

BACKLOG = "bench_backlog"
WAKEUPS = "bench_wakeups"

BATCH = 1_000  # jobs in each call of enqueue_many
SHORTEST, LONGEST = 0.02, 0.06  # seconds between two jobs, so that the worker is idle again
WARMUP = 5  # first jobs of each part, which open connections and are not counted
POLL_EVERY = 0.02  # seconds
ANSWER_WITHIN = 30.0  # seconds for one wake-up: longer than a poll, for where notifications do not arrive

app = Tenure(routes={})  # [routes] of the project would send these jobs to other queues


@app.job(name="bench_nothing", queue=BACKLOG)
async def nothing(user_id: int, template: str, to: str) -> None:
    """Returns at once."""


@app.job(name="bench_wakeup", queue=WAKEUPS, priority="high")
async def wakeup() -> int:
    """Returns when it began, by the clock of its machine."""
    return time.time_ns()


@dataclass(frozen=True, slots=True)
class EnqueueRate:
    jobs: int
    per_second: float
    batch: int
    """Jobs in each call."""


@dataclass(frozen=True, slots=True)
class DrainRate:
    jobs: int
    per_second: float
    concurrency: int
    """Jobs at a time in the one worker process."""


@dataclass(frozen=True, slots=True)
class WakeupTimes:
    """From the call of `enqueue` to the first line of the handler, in milliseconds."""

    jobs: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchFigures:
    enqueue_one_by_one: EnqueueRate
    enqueue_in_bulk: EnqueueRate
    wakeup: WakeupTimes
    drain: DrainRate

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BenchTimes:
    """Seconds for each part. A backlog that is drained sooner ends its part."""

    one_by_one: float
    in_bulk: float
    wakeups: float
    drain: float

    @staticmethod
    def of(seconds: float) -> BenchTimes:
        """Most of the time goes to the wake-ups: a p99 needs many of them."""
        return BenchTimes(seconds * 0.15, seconds * 0.1, seconds * 0.4, seconds * 0.35)


async def server_version(database: DatabaseTarget) -> str:
    link = Link(database, "bench")
    try:
        [row] = await link.fetch(reports.identify_server())
        return row.version
    finally:
        await link.close()


async def has_worker() -> bool:
    return any(worker.alive for worker in await app.client().workers())


async def pause_backlog() -> None:
    await app.client().pause(BACKLOG, reason="measured later")


async def enqueue_one_by_one(seconds: float) -> EnqueueRate:
    for n in range(WARMUP):
        await nothing.enqueue(*_arguments(n))
    began, count = time.perf_counter(), 0
    while (took := time.perf_counter() - began) < seconds:
        await nothing.enqueue(*_arguments(count))
        count += 1
    return EnqueueRate(count, _rate(count, took), 1)


async def enqueue_in_bulk(seconds: float) -> tuple[EnqueueRate, UUID]:
    """Also returns the id of the last job, which is drained last."""
    began, count = time.perf_counter(), 0
    while True:
        handles = await app.enqueue_many(_call(n) for n in range(BATCH))
        count += len(handles)
        took = time.perf_counter() - began
        if took >= seconds:
            return EnqueueRate(count, _rate(count, took), BATCH), handles[-1].id


async def measure_wakeups(seconds: float) -> WakeupTimes:
    """One job at a time, each for an idle worker. The worker must be on this machine: one clock is read on both sides."""
    ages: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(ages) <= WARMUP:
        sent = time.time_ns()
        handle = await wakeup.enqueue()
        ages.append((await handle.result(timeout=ANSWER_WITHIN) - sent) / 1e6)
        await asyncio.sleep(random.uniform(SHORTEST, LONGEST))  # noqa: S311 - not a secret
    counted = sorted(ages[WARMUP:])
    return WakeupTimes(len(counted), _percentile(counted, 0.5), _percentile(counted, 0.99))


async def drain(last: UUID, seconds: float, concurrency: int, check: Callable[[], None]) -> DrainRate:
    """Until the last job has ended or the time is over. `check` raises if the worker has exited."""
    client = app.client()
    await client.resume(BACKLOG)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds and not await _has_ended(client, last):
        check()
        await asyncio.sleep(POLL_EVERY)
    finished = await _count_finished(client)
    took = time.perf_counter() - began
    return DrainRate(finished, _rate(finished, took), concurrency)


async def _has_ended(client: Client, job_id: UUID) -> bool:
    found = await client.find(job_id)
    return found is not None and found.state in FINISHED


async def _count_finished(client: Client) -> int:
    stats = await client.stats()
    return sum(count.jobs for count in stats.finished if count.kind == nothing.name and count.what in FINISHED)


def _call(n: int) -> Call[None]:
    return nothing.call(*_arguments(n))


def _arguments(n: int) -> tuple[int, str, str]:
    return n, "welcome", "ada@example.org"


def _rate(jobs: int, seconds: float) -> float:
    return round(jobs / seconds, 1)


def _percentile(ordered: list[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 2)
