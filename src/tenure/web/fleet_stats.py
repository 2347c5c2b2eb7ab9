"""Counts of queues, workers and leaders, for all viewers of a process: computed once, used for a second or two.

No number is computed by reading all jobs: pending jobs are counted up to a bound, finished ones by the kept counters.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar, cast

from tenure.client.client import Client
from tenure.client.limits import LimitStatus
from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.client.schedule_status import ScheduleStatus
from tenure.client.schedules import Schedules
from tenure.client.status import JobStatus
from tenure.store import failures, live, reports, stats
from tenure.store.query import Fetch, Query
from tenure.store.reports import FinishedCountRow, HeldWorkflowsRow, LatencyRow
from tenure.store.stats import FleetMinuteRow, GroupedSeriesRow, HistogramRow, SeriesRow, Span
from tenure.web.failure_groups import FailedJobs, FailureGroup, group_failures
from tenure.web.fleet_survey import FleetSurvey
from tenure.web.job_views import LARGEST_SHOWN
from tenure.web.security.principal import LOCAL, Principal
from tenure.web.security.redaction import KnownSecrets, Redaction

T = TypeVar("T")

MOST_COUNTED = 10_000
"""Jobs of one sort are counted up to this number, in all queues together. Each counted job is a visit to its row.

Pending jobs, and jobs that are blocked or wait for an event, are counted queue by queue, each up to an equal share of it. For
the others, no index begins with the queue."""

FEWEST_COUNTED = 200
"""The share of a queue is at least this."""

COUNTED = ("pending", "scheduled", "retry", "blocked", "waiting", "dead_letter")
"""States whose jobs are counted by queue. Running ones are counted by the claims that hold them."""

MOST_FAILURES = 5_000
"""Failed jobs of each state that are looked at."""

AGE = 2.0
"""Seconds for which a snapshot is used: open dashboards ask for it all the time."""

GroupColumn = Literal["queue", "kind"]

RARE_AGE = 10.0
"""The same for limits and schedules, which change rarely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """A queue. Jobs are counted up to a bound: there may be more in the states of `capped` than their numbers, also where the
    number is 0. Numbers of other states are exact."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    pending: int
    running: int
    scheduled: int
    retry: int
    blocked: int
    waiting: int
    dead_letter: int
    capped: list[str]
    oldest_pending_at: datetime | None
    oldest_pending_seconds: float | None
    oldest_running_seconds: float | None
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
    held_by_unknown: int
    """Running jobs whose worker has no row."""
    held_workflows: list[HeldWorkflowsRow]


class SharedResult(Generic[T]):
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

    @property
    def is_old(self) -> bool:
        """What is kept will not be used any more."""
        return self._computing is None and (self._kept is None or time.monotonic() - self._kept[0] >= self._age)

    def forget(self) -> None:
        """After a change: who asks from now on must not get what was computed before it."""
        self._computing = self._kept = None

    async def _run(self) -> T:
        began, mine = time.monotonic(), asyncio.current_task()
        try:
            value = await self._compute()
            if self._computing is mine:
                # A slow answer is used longer: viewers must not keep the database busy with counting.
                self._kept = time.monotonic() + 10 * (time.monotonic() - began), value
        finally:
            if self._computing is mine:
                self._computing = None
        return value


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


SERIES_AGE = 12.0
"""Seconds for which numbers of charts are used: as many viewers as you like ask for them five times a minute together."""
MOST_SERIES = 200
MOST_LISTS = 10  # a page of 200 jobs may use 20 MB
GROUPS_AT_ONCE = 200  # groups of failures whose newest jobs are read by one statement


class FleetStats:
    def __init__(self, client: Client, schedules: Schedules, read: Fetch, read_wide: Fetch, redaction: Redaction) -> None:
        self._client = client
        self._redaction = redaction
        self._schedules = schedules
        self._read = read
        self._read_wide = read_wide
        self._queues = 20  # until they are known: the first count must not be slow either
        self.counts = SharedResult(self._count, AGE)
        self.rare = SharedResult(self._count_rare, RARE_AGE)
        self._series: dict[tuple[str, tuple[object, ...]], SharedResult[Any]] = {}
        self._lists: dict[tuple[str, tuple[object, ...]], SharedResult[Any]] = {}

    async def series(self, seconds: float, step: float, queue: str | None, kind: str | None) -> list[SeriesRow]:
        """Jobs by step and what."""
        return await self._shared(stats.count_series(seconds, step, queue, kind), step)

    async def series_by(self, group: GroupColumn, seconds: float, step: float) -> list[GroupedSeriesRow]:
        """The same for each queue or kind."""
        count = stats.count_series_by_queue if group == "queue" else stats.count_series_by_kind
        return await self._shared(count(seconds, step), step)

    async def histogram(self, seconds: float, step: float, span: Span, queue: str | None, kind: str | None) -> list[HistogramRow]:
        """How long jobs waited and ran, by step."""
        return await self._shared(stats.count_histogram(seconds, step, span, queue, kind), step)

    async def latencies(self, seconds: float, queue: str | None, kind: str | None) -> list[LatencyRow]:
        """How long jobs waited and ran, in all."""
        return await self._shared(reports.latencies(seconds, queue, kind), seconds / 60)

    async def fleet_minutes(self, seconds: float, step: float) -> list[FleetMinuteRow]:
        """Workers and what waits, by step."""
        return await self._shared(stats.list_fleet_minutes(seconds, step), step)

    async def failures(self, seconds: float, principal: Principal = LOCAL) -> FailedJobs:
        """Jobs whose last attempt failed in this time, as far as the principal may see them. Grouped once for all who see the
        same: that takes longer than to read them."""
        seen = seconds, principal.queues, principal.kinds
        return await self.kept("failures", seen, lambda: self._shown_failures(seconds, principal), SERIES_AGE)

    def forget_failures(self) -> None:
        """After they were acted on: who looks again must not see them as they were."""
        for key in [key for key in self._series if key[0] == "failures"]:
            del self._series[key]

    async def find_failures(self, seconds: float, principal: Principal) -> FailedJobs:
        """The same, read now: for failures that are acted on."""
        now = datetime.now(UTC)
        rows = await self._read(failures.find_all(now - timedelta(seconds=seconds), MOST_FAILURES))
        seen = [row for row in rows if principal.sees(kind=row.kind, queue=row.queue)]
        return FailedJobs(group_failures(seen, now, seconds), capped=len(rows) >= MOST_FAILURES)

    async def _shown_failures(self, seconds: float, principal: Principal) -> FailedJobs:
        """Messages without the secrets of the newest job of each group."""
        found = await self.find_failures(seconds, principal)
        shown: list[FailureGroup] = []
        for start in range(0, len(found.groups), GROUPS_AT_ONCE):
            groups = found.groups[start : start + GROUPS_AT_ONCE]
            rows = await self._read(live.find_shown([group.newest[0] for group in groups], LARGEST_SHOWN))
            known = {row.job.id: self._redaction.secrets_of(JobStatus.from_row(row.job)) for row in rows}
            shown += [group.without(known.get(group.newest[0], KnownSecrets([]))) for group in groups]
        return replace(found, groups=shown)

    async def _shared(self, query: Query[T], step: float) -> list[T]:
        """Steps of an hour change less often than steps of a minute."""

        async def read() -> list[T]:
            return await self._read_wide(query)

        return await self.kept(query.name, tuple(query.values.values()), read, max(SERIES_AGE, step / 30))

    async def kept(self, name: str, values: tuple[object, ...], read: Callable[[], Awaitable[T]], age: float) -> T:
        """What `read` returns, once for all who ask for the same within `age` seconds."""
        shared = self._series.get((name, values))
        if shared is None:
            if len(self._series) >= MOST_SERIES:
                self._series.clear()
            shared = self._series[name, values] = SharedResult(read, age)
        return cast("T", await shared.get())

    async def kept_list(self, name: str, values: tuple[object, ...], read: Callable[[], Awaitable[T]], age: float) -> T:
        """The same for lists, which callers choose and which may be large: few are kept, and none that is too old."""
        self._lists = {key: one for key, one in self._lists.items() if not one.is_old}
        shared = self._lists.get((name, values))
        if shared is None:
            if len(self._lists) >= MOST_LISTS:
                del self._lists[next(iter(self._lists))]
            shared = self._lists[name, values] = SharedResult(read, age)
        return cast("T", await shared.get())

    async def _count(self) -> FleetCounts:
        [row] = await self._read(stats.survey_fleet(self._share, MOST_COUNTED))
        survey = FleetSurvey.of(row)
        served = {name for worker in survey.workers if worker.alive for name in worker.queues}
        counted = {row.queue for row in survey.waiting} | {row.queue for row in survey.today}
        names = counted | survey.held.keys() | survey.pauses.keys() | served
        self._queues = len(names)
        found = [_queue(name, survey) for name in sorted(names)]
        return FleetCounts(at=survey.at, queues=found, workers=survey.workers, leaders=survey.leaders, today=survey.today)

    async def _count_rare(self) -> RareCounts:
        limits, schedules, buckets, [unknown], held = await asyncio.gather(
            self._client.limits(),
            self._schedules.list(),
            self._read(stats.count_buckets()),
            self._read(reports.count_held_by_unknown()),
            self._read(reports.count_held_workflows()),
        )
        return RareCounts(limits=limits, schedules=schedules, buckets=buckets, held_by_unknown=unknown, held_workflows=held)

    @property
    def _share(self) -> int:
        """How many jobs of a queue are counted, of the sorts that are counted queue by queue."""
        return max(FEWEST_COUNTED, MOST_COUNTED // max(1, self._queues))


def _queue(name: str, survey: FleetSurvey) -> QueueCounts:
    rows = {row.state: row for row in survey.waiting if row.queue == name}
    pause, held = survey.pauses.get(name), survey.held.get(name)
    oldest = rows["pending"].oldest_at if "pending" in rows else None
    sums: dict[str, int] = {}
    for count in survey.today:
        if count.queue == name:
            sums[count.what] = sums.get(count.what, 0) + count.jobs
    return QueueCounts(
        name=name,
        paused_at=None if pause is None else pause.paused_at,
        paused_by=None if pause is None else pause.paused_by,
        pause_reason=None if pause is None else pause.pause_reason,
        running=0 if held is None else held.jobs,
        oldest_running_seconds=None if held is None else max(0.0, (survey.at - held.oldest_at).total_seconds()),
        capped=[state for state in COUNTED if state in survey.capped or (state in rows and rows[state].capped)],
        oldest_pending_at=oldest,
        oldest_pending_seconds=None if oldest is None else max(0.0, (survey.at - oldest).total_seconds()),
        today=sums,
        **{state: rows[state].jobs if state in rows else 0 for state in COUNTED},
    )
