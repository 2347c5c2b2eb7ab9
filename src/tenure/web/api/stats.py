"""Numbers for overviews and charts, from kept counters."""

from __future__ import annotations

from functools import partial

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.rates import Latency, joined, latencies
from tenure.model.durations import to_seconds
from tenure.model.options import check_option
from tenure.store.stats import FleetMinuteRow, Span
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.fleet_stats import GroupColumn, QueueCounts
from tenure.web.problems import invalid_value

LONGEST = 90 * 86400.0  # seconds: counters are kept for 90 days
HOURS_KEPT = 8 * 86400.0  # seconds: for how long latencies are kept by hour
MOST_STEPS = 1500


class SpanQuery(RequestModel):
    last: str = Field("1h", description='"15m", "24h", "7d"; at most 90 days.')

    @property
    def seconds(self) -> float:
        seconds = check_option("last", partial(to_seconds, what="last"), self.last)
        if not 60 <= seconds <= LONGEST:
            raise invalid_value("query.last", f"is {self.last!r}: give a duration from 1m to 90d")
        return seconds


class PeriodQuery(SpanQuery):
    queue: str | None = None
    kind: str | None = None


class SteppedQuery(SpanQuery):
    step: str | None = Field(None, description='The width of a step: "1m", "1h". Left out: about 60 steps.')


class LatencyQuery(PeriodQuery):
    by: GroupColumn | None = Field(None, description="For each queue, all kinds together, or the reverse. Left out: for both.")


class SeriesQuery(SteppedQuery, PeriodQuery):
    """Of all jobs, or of one queue or kind."""


class GroupedSeriesQuery(SteppedQuery):
    by: GroupColumn = Field("queue", description="A series for each queue, or for each kind.")


class FleetTotals(TypedDict):
    pending: int
    running: int
    scheduled: int
    retry: int
    blocked: int
    waiting: int
    dead_letter: int
    workers: int
    slots: int
    oldest_pending_seconds: float | None


class StatsReply(TypedDict):
    at: str
    totals: FleetTotals
    capped: list[str]
    """States of which there may be more than were counted, in some queue."""
    today: dict[str, int]
    """Since 00:00 UTC."""
    queues: list[QueueCounts]


class Point(TypedDict):
    at: str
    """The begin of the step."""
    counts: dict[str, int]
    """enqueued, started, completed, failed, canceled; attempts that ended in retry and dead_letter."""


class SeriesReply(TypedDict):
    seconds: float
    step: float
    points: list[Point]
    """Steps in which nothing happened are left out."""


class GroupedPoint(TypedDict):
    at: str
    counts: dict[str, int]
    ran: float
    """Seconds that jobs ran which ended in this step: divided by the width of a step, the slots that were busy on average."""


class GroupedSeries(TypedDict):
    name: str
    points: list[GroupedPoint]


class GroupedSeriesReply(TypedDict):
    seconds: float
    step: float
    groups: list[GroupedSeries]


class HistogramPoint(TypedDict):
    at: str
    waited: dict[str, int]
    """Jobs by bucket: bucket b is for durations of at most 2 ^ (b / 2) milliseconds."""
    ran: dict[str, int]


class HistogramReply(TypedDict):
    seconds: float
    step: float
    points: list[HistogramPoint]


class FleetPoint(TypedDict):
    at: str
    """The begin of the step."""
    workers: int
    """The lowest number in the step, as of slots; of all else the highest."""
    slots: int
    busy: int
    pending: int
    oldest_pending_seconds: float
    """Of the queues that were not paused; 0: nothing waited."""
    memory_mb: float | None
    """Of the largest worker process."""
    app_versions: list[str]
    """That the workers ran: setting `app_version`."""


class QueuePoint(TypedDict):
    at: str
    pending: int
    oldest_pending_seconds: float


class QueueHistory(TypedDict):
    name: str
    points: list[QueuePoint]
    """Steps in which nothing was pending are left out."""


class FleetHistoryReply(TypedDict):
    seconds: float
    step: float
    points: list[FleetPoint]
    """Steps in which no leader ran are left out."""
    queues: list[QueueHistory]


class LatencyReply(TypedDict):
    latencies: list[Latency]


async def get_stats(call: ApiCall) -> StatsReply:
    """Count live jobs, workers and today's outcomes. Does not read history."""
    counts = await call.services.stats.counts.get()
    queues = counts.queues
    alive = [worker for worker in counts.workers if worker.alive]
    ages = [queue.oldest_pending_seconds for queue in queues if queue.oldest_pending_seconds is not None]
    today: dict[str, int] = {}
    for row in counts.today:
        today[row.what] = today.get(row.what, 0) + row.jobs
    totals: FleetTotals = {
        "pending": sum(queue.pending for queue in queues),
        "running": sum(queue.running for queue in queues),
        "scheduled": sum(queue.scheduled for queue in queues),
        "retry": sum(queue.retry for queue in queues),
        "blocked": sum(queue.blocked for queue in queues),
        "waiting": sum(queue.waiting for queue in queues),
        "dead_letter": sum(queue.dead_letter for queue in queues),
        "workers": len(alive),
        "slots": sum(worker.concurrency for worker in alive),
        "oldest_pending_seconds": max(ages, default=None),
    }
    capped = sorted({state for queue in queues for state in queue.capped})
    return {"at": counts.at.isoformat(), "totals": totals, "capped": capped, "today": today, "queues": queues}


async def get_series(call: ApiCall, query: SeriesQuery) -> SeriesReply:
    """Count jobs that were enqueued, started and ended in each step of a period, for charts.

    By minutes up to a day, by hours beyond that.
    """
    call.principal.require_filter(kind=query.kind, queue=query.queue)
    seconds, step = query.seconds, _step(query)
    rows = await call.services.stats.series(seconds, step, query.queue, query.kind)
    points: dict[str, dict[str, int]] = {}
    for row in rows:
        points.setdefault(row.at.isoformat(), {})[row.what] = row.jobs
    return {"seconds": seconds, "step": step, "points": [{"at": at, "counts": counts} for at, counts in points.items()]}


async def get_grouped_series(call: ApiCall, query: GroupedSeriesQuery) -> GroupedSeriesReply:
    """Count jobs for each queue or each kind, in each step of a period, and how long they ran."""
    seconds, step = query.seconds, _step(query)
    groups: dict[str, list[GroupedPoint]] = {}
    for row in await call.services.stats.series_by(query.by, seconds, step):
        groups.setdefault(row.name, []).append({"at": row.at.isoformat(), "counts": row.counts, "ran": row.ran})
    return {"seconds": seconds, "step": step, "groups": [{"name": name, "points": points} for name, points in groups.items()]}


async def get_histogram(call: ApiCall, query: SeriesQuery) -> HistogramReply:
    """Show how long jobs waited and ran in each step of a period, as counts by duration, for percentiles and heat maps.

    By minutes up to a day, by hours up to eight days, by days beyond that. Steps of whole hours are answered fastest.
    """
    call.principal.require_filter(kind=query.kind, queue=query.queue)
    seconds = query.seconds
    step = _step(query, 86400.0 if seconds > HOURS_KEPT else 3600.0 if seconds > 86400 else 60.0)
    span: Span = "day" if seconds > HOURS_KEPT else "hour" if step % 3600 == 0 else "minute"
    points: dict[str, HistogramPoint] = {}
    for row in await call.services.stats.histogram(seconds, step, span, query.queue, query.kind):
        at = row.at.isoformat()
        point = points.setdefault(at, {"at": at, "waited": {}, "ran": {}})
        (point["waited"] if row.measure == "waited" else point["ran"])[str(row.bucket)] = row.jobs
    return {"seconds": seconds, "step": step, "points": list(points.values())}


async def get_fleet_history(call: ApiCall, query: SteppedQuery) -> FleetHistoryReply:
    """Show workers, slots and pending jobs in each step of a period, and how long the first of these jobs had waited.

    The leader records it once a minute, and it is kept for a day. Of the queues the hundred that wait longest are recorded.
    """
    seconds, step = query.seconds, _step(query)
    points: list[FleetPoint] = []
    queues: dict[str, QueueHistory] = {}
    for row in await call.services.stats.fleet_minutes(seconds, step):
        at = row.at.isoformat()
        points.append(_fleet_point(row, at))
        for one in row.queues:
            history = queues.setdefault(one.name, {"name": one.name, "points": []})
            history["points"].append({"at": at, "pending": one.pending, "oldest_pending_seconds": one.oldest})
    return {"seconds": seconds, "step": step, "points": points, "queues": [queues[name] for name in sorted(queues)]}


def _fleet_point(row: FleetMinuteRow, at: str) -> FleetPoint:
    return {
        "at": at,
        "workers": row.workers,
        "slots": row.slots,
        "busy": row.busy,
        "pending": row.pending,
        "oldest_pending_seconds": row.oldest_seconds,
        "memory_mb": row.memory_mb,
        "app_versions": row.app_versions,
    }


async def get_latencies(call: ApiCall, query: LatencyQuery) -> LatencyReply:
    """Show how long finished jobs waited and ran, as percentiles, by queue and kind."""
    call.principal.require_filter(kind=query.kind, queue=query.queue)
    rows = await call.services.stats.latencies(query.seconds, query.queue, query.kind)
    return {"latencies": latencies(joined(rows, query.by))}


def _step(query: SteppedQuery, finest: float | None = None) -> float:
    seconds = query.seconds
    finest = finest or (60.0 if seconds <= 86400 else 3600.0)
    if query.step is None:
        return _rounded(seconds / 60, finest)
    step = check_option("step", partial(to_seconds, what="step"), query.step)
    if step < finest or step % finest or seconds / step > MOST_STEPS:
        raise invalid_value(
            "query.step", f"is {query.step!r}: give a multiple of {finest:g} s, at most {MOST_STEPS} steps in all"
        )
    return step


def _rounded(step: float, finest: float) -> float:
    return max(finest, finest * -(-step // finest))
