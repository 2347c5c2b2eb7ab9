"""A schedule and the outcome of its planned times, at the time of the query."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tenure.model.schedules import GRACE, CatchUp, Overlap, Schedule
from tenure.store.schedules import ScheduleRow, TickRow

_DEFINITION = [field.name for field in fields(Schedule)]


@dataclass(frozen=True, kw_only=True)
class ScheduleStatus:
    """A schedule at the time of the query."""

    name: str
    owner: str | None
    """The app whose code declares it. None: it was created at run time."""
    kind: str
    cron: str | None
    every: timedelta | None
    timezone: str
    input: Any
    queue: str
    priority: int
    capability: str | None
    max_attempts: int
    timeout: float | None
    overlap: Overlap
    catch_up: CatchUp
    catch_up_limit: int
    jitter: timedelta
    expires: timedelta | None
    """After this time, a job of it that was not started is canceled."""
    created_at: datetime
    changed_at: datetime
    changed_by: str | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    retired_at: datetime | None
    """When the code stopped declaring it."""
    next_at: datetime | None
    """Its next planned time, in its own time zone. None while it is paused or retired."""
    last_at: datetime | None
    """The last planned time that has an outcome."""
    asked_at: datetime
    """By PostgreSQL's clock."""

    @property
    def paused(self) -> bool:
        return self.paused_at is not None

    @property
    def active(self) -> bool:
        return self.paused_at is None and self.retired_at is None

    @property
    def definition(self) -> Schedule:
        return Schedule(**{name: getattr(self, name) for name in _DEFINITION})

    @property
    def words(self) -> str:
        """When it runs: "at 09:00 on Monday through Friday, Europe/Berlin"."""
        return self.definition.in_words()

    def upcoming(self, count: int = 5) -> list[datetime]:
        """The next planned times after the query, as if it were not paused, in its own time zone."""
        return self.definition.upcoming(self.asked_at, count)

    @staticmethod
    def from_row(row: ScheduleRow) -> ScheduleStatus:
        values = row._asdict()
        since = values.pop("since")
        for name in ("every", "jitter", "expires"):
            values[name] = None if values[name] is None else timedelta(seconds=values[name])
        values["input"] = json.loads(values["input"])
        status = ScheduleStatus(**values)
        if status.active and status.next_at is None:  # the leader has not processed it yet
            object.__setattr__(status, "next_at", status.definition.next_after(since))
        return status

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: times in ISO 8601, durations in seconds."""
        return {**{field.name: _plain(getattr(self, field.name)) for field in fields(self)}, "words": self.words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The outcome of a planned time."""

    schedule: str
    planned_at: datetime
    until: datetime | None
    """For several missed times in a row: the last one."""
    times: int
    """How many planned times this entry covers."""
    outcome: str
    """enqueued, skipped (an earlier job was live), queued (waits for it to end) or missed."""
    job_id: UUID | None
    recorded_at: datetime
    by: str | None
    """Who triggered a run that was not planned."""
    job_state: str | None = None
    """The current state of its job. None: it has none, or it is no longer stored."""

    @property
    def is_late(self) -> bool:
        """It was recorded more than a minute after its time."""
        return self.recorded_at - self.planned_at > GRACE

    @staticmethod
    def from_row(row: TickRow) -> Tick:
        return Tick(**row._asdict())

    def to_json(self) -> dict[str, Any]:
        return {**{field.name: _plain(getattr(self, field.name)) for field in fields(self)}, "is_late": self.is_late}


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
    return value
