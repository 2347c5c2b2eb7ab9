"""Numbers for overviews and charts, from kept counters."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.rates import Latency
from tenure.model.durations import to_seconds
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.fleet_stats import QueueCounts
from tenure.web.problems import Problem

LONGEST = 90 * 86400.0  # seconds: counters are kept for 90 days
MOST_STEPS = 1500


class PeriodQuery(RequestModel):
    last: str = Field("1h", description='"15m", "24h", "7d"; at most 90 days.')
    queue: str | None = None
    kind: str | None = None

    @property
    def seconds(self) -> float:
        seconds = to_seconds(self.last, what="last")
        if not 60 <= seconds <= LONGEST:
            raise Problem(422, "invalid-value", f"query.last is {self.last!r}: give a duration from 1m to 90d")
        return seconds


class SeriesQuery(PeriodQuery):
    step: str | None = Field(None, description='The width of a step: "1m", "1h". Left out: about 60 steps.')


class FleetTotals(TypedDict):
    pending: int
    running: int
    scheduled: int
    retry: int
    dead_letter: int
    workers: int
    slots: int
    oldest_pending_seconds: float | None


class StatsReply(TypedDict):
    at: str
    totals: FleetTotals
    capped: list[str]
    """States of which there are more than were counted, in some queue."""
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
    seconds, finest = query.seconds, 60.0 if query.seconds <= 86400 else 3600.0
    step = _rounded(seconds / 60, finest) if query.step is None else to_seconds(query.step, what="step")
    if step < finest or step % finest or seconds / step > MOST_STEPS:
        raise Problem(422, "invalid-value", f"query.step is {query.step!r}: give a multiple of {finest:g} s, at most "
                      f"{MOST_STEPS} steps in all")  # fmt: skip
    rows = await call.services.stats.series(seconds, step, query.queue, query.kind)
    points: dict[str, dict[str, int]] = {}
    for row in rows:
        points.setdefault(row.at.isoformat(), {})[row.what] = row.jobs
    return {"seconds": seconds, "step": step, "points": [{"at": at, "counts": counts} for at, counts in points.items()]}


async def get_latencies(call: ApiCall, query: PeriodQuery) -> LatencyReply:
    """Show how long finished jobs waited and ran, as percentiles, by queue and kind."""
    call.principal.require_filter(kind=query.kind, queue=query.queue)
    return {"latencies": await call.services.client.latencies(query.seconds, queue=query.queue, kind=query.kind)}


def _rounded(step: float, finest: float) -> float:
    return max(finest, finest * -(-step // finest))
