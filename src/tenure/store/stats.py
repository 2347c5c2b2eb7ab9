"""The statements that count, as values. Their cost does not grow with the number of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from tenure.store.json_columns import Json
from tenure.store.leases import LeaderRow, Term, guard
from tenure.store.query import Query
from tenure.store.queues import QueueRow
from tenure.store.reports import FinishedCountRow, LatencyRow
from tenure.store.workers import WorkerRow

Span = Literal["minute", "hour", "day"]
"""Latencies are kept by minute for a day, by hour for eight days, and by day for 90 days."""

WIDTHS: dict[Span, float] = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}
"""Seconds. Days are those of UTC."""


class WaitingRow(NamedTuple):
    queue: str
    state: str
    jobs: int
    capped: bool
    """There may be more: counting this queue stopped there."""
    oldest_at: datetime | None
    """Since when the first pending job waits."""


class RunningCountRow(NamedTuple):
    queue: str
    jobs: int
    oldest_at: datetime
    """When the first of them was claimed."""


class SurveyRow(NamedTuple):
    """The fleet at one moment."""

    at: datetime
    waiting: Json[list[WaitingRow]]
    capped: Json[list[str]]
    """States of which any queue may have more: counting all queues together stopped."""
    held: Json[list[RunningCountRow]]
    """Running jobs by queue."""
    queues: Json[list[QueueRow]]
    today: Json[list[FinishedCountRow]]
    workers: Json[list[WorkerRow]]
    leaders: Json[list[LeaderRow]]


class GroupedSeriesRow(NamedTuple):
    name: str
    """Of the queue or kind."""
    at: datetime
    """The begin of the step."""
    counts: Json[dict[str, int]]
    """Jobs by what happened to them."""
    ran: float
    """Seconds that they ran, all together."""


class HistogramRow(NamedTuple):
    at: datetime
    """The begin of the step."""
    measure: str
    bucket: int
    jobs: int


class SeriesRow(NamedTuple):
    at: datetime
    """The begin of the step."""
    what: str
    jobs: int


class RecordedMinuteRow(NamedTuple):
    holds: bool
    next_in: float
    """Seconds until the next minute."""


class QueueMinute(NamedTuple):
    name: str
    pending: int
    oldest: float
    """Seconds for which the first pending job had waited."""


class FleetMinuteRow(NamedTuple):
    at: datetime
    """The begin of the step."""
    workers: int
    slots: int
    busy: int
    pending: int
    oldest_seconds: float
    """How long the first pending job of the queues that are not paused had waited."""
    memory_mb: float | None
    """Of the largest worker process. None: not measured."""
    app_versions: Json[list[str]]
    queues: Json[list[QueueMinute]]
    """That had pending jobs."""


def record_fleet(term: Term, most: int) -> Query[RecordedMinuteRow]:
    return Query("stats/record_fleet", RecordedMinuteRow, {**guard(term), "most": most})


def list_fleet_minutes(seconds: float, step: float) -> Query[FleetMinuteRow]:
    return Query("stats/list_fleet_minutes", FleetMinuteRow, {"seconds": seconds, "step": step})


def survey_fleet(most: int, most_in_all: int) -> Query[SurveyRow]:
    """`most`: of a queue, for states whose jobs have an index by queue. `most_in_all`: of all queues, for the others."""
    return Query("stats/survey_fleet", SurveyRow, {"most": most, "most_in_all": most_in_all})


def count_buckets() -> Query[LatencyRow]:
    return Query("stats/count_buckets", LatencyRow)


def count_series(seconds: float, step: float, queue: str | None, kind: str | None) -> Query[SeriesRow]:
    values = {"seconds": seconds, "step": step, "queue": queue, "kind": kind}
    return Query("stats/count_series", SeriesRow, values)


def count_series_by_queue(seconds: float, step: float) -> Query[GroupedSeriesRow]:
    return Query("stats/count_series_by_queue", GroupedSeriesRow, {"seconds": seconds, "step": step})


def count_series_by_kind(seconds: float, step: float) -> Query[GroupedSeriesRow]:
    return Query("stats/count_series_by_kind", GroupedSeriesRow, {"seconds": seconds, "step": step})


def count_histogram(seconds: float, step: float, span: Span, queue: str | None, kind: str | None) -> Query[HistogramRow]:
    """`step` is a multiple of the span."""
    values = {"seconds": seconds, "step": step, "span": span, "width": WIDTHS[span], "queue": queue, "kind": kind}
    return Query("stats/count_histogram", HistogramRow, values)
