"""Reads the one row with the state of the fleet: its lists of JSON become rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, get_type_hints
from uuid import UUID

from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.store.leases import LeaderRow
from tenure.store.queues import QueueRow
from tenure.store.reports import FinishedCountRow
from tenure.store.stats import RunningCountRow, SurveyRow, WaitingRow
from tenure.store.workers import WorkerRow

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSurvey:
    at: datetime
    waiting: list[WaitingRow]
    held: dict[str, RunningCountRow]
    """Running jobs by queue."""
    pauses: dict[str, QueueRow]
    today: list[FinishedCountRow]
    workers: list[WorkerStatus]
    leaders: list[LeaderStatus]

    @staticmethod
    def of(row: SurveyRow) -> FleetSurvey:
        return FleetSurvey(
            at=row.at,
            waiting=_rows(row.waiting, WaitingRow),
            held={one.queue: one for one in _rows(row.held, RunningCountRow)},
            pauses={one.name: one for one in _rows(row.queues, QueueRow)},
            today=_rows(row.today, FinishedCountRow),
            workers=[WorkerStatus.from_row(one) for one in _rows(row.workers, WorkerRow)],
            leaders=[LeaderStatus.from_row(one) for one in _rows(row.leaders, LeaderRow)],
        )


def _rows(text: str | None, row_type: type[Row]) -> list[Row]:
    """The row types are named tuples of plain values, times and ids."""
    types = get_type_hints(row_type)
    return [row_type(**{name: _value(value, types[name]) for name, value in given.items()}) for given in json.loads(text or "[]")]


def _value(value: Any, wanted: Any) -> Any:
    if value is None:
        return None
    if wanted in (datetime, datetime | None):
        return datetime.fromisoformat(value)
    return UUID(value) if wanted is UUID else value
