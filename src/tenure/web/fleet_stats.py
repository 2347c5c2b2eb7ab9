"""Counts of queues, workers and leaders, for all viewers of a process: computed once, used for a second or two.

No number is computed by reading all jobs: pending jobs are counted up to a bound, finished ones by the kept counters.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from tenure.client.client import Client
from tenure.client.filters import Filters
from tenure.client.limits import LimitStatus
from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.client.pages import look_live
from tenure.client.schedule_status import ScheduleStatus
from tenure.client.schedules import Schedules
from tenure.model.states import State
from tenure.store import queues, stats
from tenure.store.query import Fetch
from tenure.store.queues import QueueRow
from tenure.store.reports import FinishedCountRow, LatencyRow
from tenure.store.stats import SeriesRow, WaitingRow

T = TypeVar("T")

MOST_COUNTED = 10_000
"""Jobs of one queue and state are counted up to this number."""

MOST_IN_ALL = 20_000
"""With many queues, each is counted up to an equal share of this."""

FEWEST_COUNTED = 200
MOST_HELD = 5_000

AGE = 1.0
"""Seconds for which a snapshot is used."""

RARE_AGE = 10.0
"""The same for limits and schedules, which change rarely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """A queue. Numbers of live jobs are counted up to a bound: `capped` names those that reached it."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    pending: int
    running: int
    scheduled: int
    retry: int
    dead_letter: int
    capped: list[str]
    oldest_pending_at: datetime | None
    oldest_pending_seconds: float | None
    today: dict[str, int]
    """Since 00:00 UTC: enqueued, started, completed, failed, canceled; attempts that ended in retry and dead_letter."""

    @property
    def paused(self) -> bool:
        return self.paused_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCounts:
    """Queues, workers and leaders at one moment."""

    at: datetime
    queues: list[QueueCounts]
    workers: list[WorkerStatus]
    leaders: list[LeaderStatus]
    today: list[FinishedCountRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class RareCounts:
    limits: list[LimitStatus]
    schedules: list[ScheduleStatus]
    buckets: list[LatencyRow]


class Shared(Generic[T]):
    """A value that is computed once at a time, and used by all for `age` seconds. An error is raised for all who wait for it."""

    def __init__(self, compute: Callable[[], Awaitable[T]], age: float) -> None:
        self._compute = compute
        self._age = age
        self._computing: asyncio.Task[T] | None = None
        self._kept: tuple[float, T] | None = None

    async def get(self) -> T:
        if self._kept is not None and time.monotonic() - self._kept[0] < self._age:
            return self._kept[1]
        if self._computing is None:
            self._computing = asyncio.create_task(self._run())
            self._computing.add_done_callback(_retrieve)  # all who wait for it may have given up
        return await asyncio.shield(self._computing)

    async def _run(self) -> T:
        began = time.monotonic()
        try:
            value = await self._compute()
        finally:
            self._computing = None
        # A slow answer is used longer: viewers must not keep the database busy with counting.
        self._kept = time.monotonic() + 10 * (time.monotonic() - began), value
        return value


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


SERIES_AGE = 5.0
MOST_SERIES = 200


class FleetStats:
    def __init__(self, client: Client, schedules: Schedules, read: Fetch, read_wide: Fetch) -> None:
        self._client = client
        self._schedules = schedules
        self._read = read
        self._read_wide = read_wide
        self._queues = 20  # until they are known: the first count must not be slow either
        self.counts = Shared(self._count, AGE)
        self.rare = Shared(self._count_rare, RARE_AGE)
        self._series: dict[tuple[float, float, str | None, str | None], Shared[list[SeriesRow]]] = {}

    async def series(self, seconds: float, step: float, queue: str | None, kind: str | None) -> list[SeriesRow]:
        """Jobs by step and what."""
        key = seconds, step, queue, kind
        shared = self._series.get(key)
        if shared is None:
            if len(self._series) >= MOST_SERIES:
                self._series.clear()
            query = stats.count_series(seconds, step, queue, kind)
            shared = self._series[key] = Shared(lambda: self._read_wide(query), SERIES_AGE)
        return await shared.get()

    async def _count(self) -> FleetCounts:
        waiting = await self._read(stats.count_waiting(self._most))
        look = await look_live(self._read, Filters(states=frozenset({State.RUNNING})), None, MOST_HELD)
        held = {row.queue: row.jobs for row in await self._read(stats.count_listed(look.ids))} if look.ids else {}
        pauses = {row.name: row for row in await self._read_wide(queues.find_all())}
        today = await self._read(stats.count_today())
        workers, leaders = await self._client.workers(), await self._client.leaders()
        served = {name for worker in workers if worker.alive for name in worker.queues}
        names = {row.queue for row in waiting} | held.keys() | pauses.keys() | {row.queue for row in today} | served
        self._queues = len(names)
        now = datetime.now(UTC)
        found = [_queue(name, waiting=waiting, held=held, pause=pauses.get(name), today=today, now=now) for name in sorted(names)]
        return FleetCounts(at=now, queues=found, workers=workers, leaders=leaders, today=today)

    async def _count_rare(self) -> RareCounts:
        return RareCounts(
            limits=await self._client.limits(),
            schedules=await self._schedules.list(),
            buckets=await self._read(stats.count_buckets()),
        )

    @property
    def _most(self) -> int:
        return max(FEWEST_COUNTED, min(MOST_COUNTED, MOST_IN_ALL // max(1, self._queues)))


def _queue(
    name: str,
    *,
    waiting: list[WaitingRow],
    held: dict[str, int],
    pause: QueueRow | None,
    today: list[FinishedCountRow],
    now: datetime,
) -> QueueCounts:
    rows = {row.state: row for row in waiting if row.queue == name}
    oldest = rows["pending"].oldest_at if "pending" in rows else None
    sums: dict[str, int] = {}
    for count in today:
        if count.queue == name:
            sums[count.what] = sums.get(count.what, 0) + count.jobs
    capped = [state for state, row in rows.items() if row.capped] + (["running"] if held.get(name, 0) >= MOST_HELD else [])
    return QueueCounts(
        name=name,
        paused_at=None if pause is None else pause.paused_at,
        paused_by=None if pause is None else pause.paused_by,
        pause_reason=None if pause is None else pause.pause_reason,
        running=held.get(name, 0),
        capped=capped,
        oldest_pending_at=oldest,
        oldest_pending_seconds=None if oldest is None else max(0.0, (now - oldest).total_seconds()),
        today=sums,
        **{state: rows[state].jobs if state in rows else 0 for state in ("pending", "scheduled", "retry", "dead_letter")},
    )
