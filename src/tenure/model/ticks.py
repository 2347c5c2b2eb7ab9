"""Decides what happens to the planned times that have passed since a schedule was last processed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

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


def to_json(schedule: Schedule, decision: TickDecision) -> dict[str, Any]:
    """As a parameter of the statement."""
    ticks: list[dict[str, Any]] = []
    if decision.missed is not None:
        first, last = decision.missed.first.isoformat(), decision.missed.last.isoformat()
        ticks.append({"planned_at": first, "until": last, "times": decision.missed.times, "missed": True})
    for planned in decision.run:
        delay = schedule.delay_of(planned)
        run_at = (planned + delay).isoformat() if delay else None
        ticks.append({"planned_at": planned.isoformat(), "times": 1, "missed": False, "job_id": str(uuid7()), "run_at": run_at})
    return {"since": decision.since.isoformat(), "next_at": decision.next_at.isoformat(), "ticks": ticks}
