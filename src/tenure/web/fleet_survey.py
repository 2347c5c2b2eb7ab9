"""The state of the fleet, by queue, worker and leader."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.store.queues import QueueRow
from tenure.store.reports import FinishedCountRow
from tenure.store.stats import RunningCountRow, SurveyRow, WaitingRow


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSurvey:
    at: datetime
    waiting: list[WaitingRow]
    capped: frozenset[str]
    """States of which any queue may have more jobs than were counted."""
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
            waiting=row.waiting,
            capped=frozenset(row.capped),
            held={one.queue: one for one in row.held},
            pauses={one.name: one for one in row.queues},
            today=row.today,
            workers=[WorkerStatus.from_row(one) for one in row.workers],
            leaders=[LeaderStatus.from_row(one) for one in row.leaders],
        )
