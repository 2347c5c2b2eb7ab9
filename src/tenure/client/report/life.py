"""The values of a report."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from tenure.client.report.html import to_html
from tenure.client.report.text import to_text
from tenure.client.status import JobStatus, Progress
from tenure.model.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of the job, from its claim to its end."""

    number: int | None
    """Which attempt it was. Snoozes, shutdowns and crashes spend none, so a number may repeat."""
    fence: int
    """Which run it was: counts every claim, never decreases."""
    worker_id: UUID | None
    worker: str | None
    """host:pid of the process, while its row exists."""
    waited: timedelta | None
    """From the time the job was ready to this start."""
    started_at: datetime | None
    ended_at: datetime | None
    ran: timedelta | None
    """Until now, while it runs."""
    outcome: str
    """completed, failed, timed_out, snoozed, requeued, crashed, lease_lost, canceled, running; or unknown, if nothing shows
    how it ended."""
    error: str | None
    next_at: datetime | None
    """When the job was due again after it."""
    by: str | None
    """Who ended it, if a user did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A change of the job while it did not run: canceled, retried, replayed."""

    at: datetime
    what: str
    by: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLogLine:
    at: datetime | None
    level: str
    message: str
    fields: dict[str, Any]
    fence: int
    """The run that wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChild:
    """A job that this one enqueued."""

    id: UUID
    kind: str
    state: State
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point of the timeline."""

    at: datetime
    what: str
    """enqueued, due, started, dead_letter, or the outcome of an attempt or the name of an incident."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTotals:
    """Sums of what is known."""

    waited: timedelta
    ran: timedelta
    lived: timedelta
    """From enqueue to the end, or until now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole history of a job, as known at `at`."""

    at: datetime
    job: JobStatus
    attempts: list[Attempt]
    untold: int
    """The number of runs of which nothing is stored any more."""
    incidents: list[Incident]
    events: list[Moment]
    progress: Progress | None
    log: list[ReportedLogLine]
    """The last lines of all runs, in order."""
    children: list[ReportedChild]
    more_children: bool
    """Not all of them are listed."""
    totals: ReportTotals

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: times in ISO 8601, durations in seconds."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def to_text(self, *, full: bool = False) -> str:
        """For a terminal. `full` does not shorten errors and long lines."""
        return to_text(self, full=full)

    def to_html(self) -> str:
        """A complete page without scripts and external resources."""
        return to_html(self)


def _plain(given: Any) -> Any:
    if isinstance(given, JobStatus):
        return given.to_json()
    if isinstance(given, list):
        return [_plain(item) for item in given]
    if is_dataclass(given):
        return {field.name: _plain(getattr(given, field.name)) for field in fields(given)}
    return _plain_value(given)


def _plain_value(given: Any) -> Any:
    match given:
        case datetime():
            return given.isoformat()
        case timedelta():
            return given.total_seconds()
        case UUID() | Enum():
            return str(given)
    return given
