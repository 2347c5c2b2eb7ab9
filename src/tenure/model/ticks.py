"""Decides what happens to the planned times that have passed since a schedule was last processed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from uuid import UUID

from tenure.model.ids import uuid7
from tenure.model.schedules import GRACE, Schedule

MOST_TIMES = 1000
"""Planned times that one decision processes, beside those it may still run: a month without a leader is processed in steps,
none of which blocks the loop."""

NEVER = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Missed:
    """Missed times, recorded as one."""

    first: datetime
    last: datetime
    times: int


@dataclass(frozen=True, slots=True)
class TickDecision:
    missed: Missed | None
    run: list[datetime]
    """Each gets a job, unless `overlap` and earlier jobs of the schedule prevent it."""
    since: datetime
    """All planned times up to here are decided."""
    next_at: datetime
    """The next planned time, at which to decide again."""


def decide(schedule: Schedule, since: datetime, now: datetime) -> TickDecision:
    """By the schedule's `catch_up`, for its planned times in (since, now]."""
    most = MOST_TIMES + schedule.catch_up_limit
    times = list(takewhile(lambda planned: planned <= now, islice(schedule.planned(since), most + 1)))
    if len(times) > most:
        # Enough newer ones are left for every policy.
        old = times[:MOST_TIMES]
        return TickDecision(Missed(old[0], old[-1], len(old)), [], old[-1], times[MOST_TIMES])
    run = _to_run(schedule, times, now)
    old = times[: len(times) - len(run)]
    missed = Missed(old[0], old[-1], len(old)) if old else None
    since = times[-1] if times else since
    return TickDecision(missed, run, since, schedule.next_after(max(since, now)) or now + NEVER)


def _to_run(schedule: Schedule, times: list[datetime], now: datetime) -> list[datetime]:
    if schedule.catch_up == "all":
        return times[-schedule.catch_up_limit :]
    if schedule.catch_up == "none":
        return [planned for planned in times[-1:] if now - planned <= GRACE]
    return times[-1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTick:
    """A planned time that is to be recorded, or several missed ones."""

    planned_at: datetime
    until: datetime | None = None
    """The last one of several."""
    times: int = 1
    missed: bool = False
    job_id: UUID | None = None
    """Of the job that is to be enqueued."""
    run_at: datetime | None = None
    """When that job is due, if not at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleMove:
    """What is to be written about a schedule, if it still has this version."""

    name: str
    version: str
    since: datetime
    next_at: datetime
    ticks: list[PlannedTick]


def move_of(name: str, version: str, schedule: Schedule, decision: TickDecision) -> ScheduleMove:
    ticks: list[PlannedTick] = []
    if (missed := decision.missed) is not None:
        ticks.append(PlannedTick(planned_at=missed.first, until=missed.last, times=missed.times, missed=True))
    for planned in decision.run:
        delay = schedule.delay_of(planned)
        ticks.append(PlannedTick(planned_at=planned, job_id=uuid7(), run_at=planned + delay if delay else None))
    return ScheduleMove(name=name, version=version, since=decision.since, next_at=decision.next_at, ticks=ticks)
