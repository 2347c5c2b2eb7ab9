"""The statements that count, as values. Their cost does not grow with the number of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.query import Query, array_literal
from tenure.store.reports import FinishedCountRow, LatencyRow


class WaitingRow(NamedTuple):
    queue: str
    state: str
    jobs: int
    capped: bool
    """There may be more: counting stopped there."""
    oldest_at: datetime | None
    """Since when the first pending job waits."""


class QueueCountRow(NamedTuple):
    queue: str
    jobs: int


class SeriesRow(NamedTuple):
    at: datetime
    """The begin of the step."""
    what: str
    jobs: int


def count_waiting(most: int) -> Query[WaitingRow]:
    return Query("stats/count_waiting", WaitingRow, {"most": most})


def count_listed(ids: Iterable[UUID]) -> Query[QueueCountRow]:
    return Query("stats/count_listed", QueueCountRow, {"ids": array_literal([str(job_id) for job_id in ids])})


def count_today() -> Query[FinishedCountRow]:
    return Query("stats/count_today", FinishedCountRow)


def count_buckets() -> Query[LatencyRow]:
    return Query("stats/count_buckets", LatencyRow)


def count_series(seconds: float, step: float, queue: str | None, kind: str | None) -> Query[SeriesRow]:
    values = {"seconds": seconds, "step": step, "queue": queue, "kind": kind}
    return Query("stats/count_series", SeriesRow, values)
