"""The statements about schedules and their ticks, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from tenure.model.schedules import GRACE, CatchUp, Overlap, Schedule
from tenure.model.ticks import PlannedTick, ScheduleMove
from tenure.store.cleaning import CleanedRow
from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.query import ALL, BOOLEAN, TEXT, Pick, Query, array_literal

PATIENCE = 600.0
"""Seconds for which a retired schedule may come back as if it had never gone: old code that starts among new retires what only
the new declares, until the next of the new starts."""


# By the leader


class DueSchedule(NamedTuple):
    """What decides the times of a schedule that is due."""

    name: str
    version: str
    since: str
    """As text: a time that Python cannot represent must spoil only its own schedule."""
    kind: str
    cron: str | None
    every: float | None
    timezone: str
    overlap: Overlap
    catch_up: CatchUp
    catch_up_limit: int
    jitter: float


class RecordedTick(NamedTuple):
    schedule: str
    planned_at: datetime
    outcome: str
    times: int
    job_id: UUID | None
    until: datetime | None = None


class RetiredSchedule(NamedTuple):
    name: str
    owner: str


class DueRow(NamedTuple):
    holds: bool
    now: datetime
    next_due: float | None
    """Seconds until the next planned time."""
    queued: bool
    """There are queued ticks."""
    schedules: Json[list[DueSchedule]]


class RecordedTicksRow(NamedTuple):
    holds: bool
    moved: int
    """Schedules."""
    enqueued: int
    """Jobs."""
    queues: list[str]
    """Of the jobs that are pending."""
    scheduled: bool
    """Others are to run later."""
    ticks: Json[list[RecordedTick]]
    """For which no job was enqueued; with `listing`, all."""


class ReleasedRow(NamedTuple):
    holds: bool
    enqueued: int
    """Jobs."""
    queues: list[str]
    dropped: int
    moved: int
    """Schedules."""
    ticks: Json[list[RecordedTick]]
    peeked: Json[list[str]]
    """The names of the schedules, if `pick.peek`."""


class RewoundRow(NamedTuple):
    holds: bool
    names: list[str]

    @property
    def peeked(self) -> list[str]:
        return self.names


class RetiredRow(NamedTuple):
    holds: bool
    retired: Json[list[RetiredSchedule]]
    peeked: Json[list[str]]
    """The names, if `pick.peek`."""


class ReconciledRow(NamedTuple):
    name: str
    what: str
    """created, changed, back, retired, taken or foreign."""
    old_owner: str | None


class RunRow(NamedTuple):
    kind: str
    queue: str
    enqueued: int
    moved: int


class ScheduleRow(NamedTuple):
    name: str
    owner: str | None
    kind: str
    cron: str | None
    every: float | None
    timezone: str
    input: str
    """JSON."""
    queue: str
    priority: int
    capability: str | None
    max_attempts: int
    timeout: float | None
    overlap: str
    catch_up: str
    catch_up_limit: int
    jitter: float
    expires: float | None
    created_at: datetime
    changed_at: datetime
    changed_by: str | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    retired_at: datetime | None
    since: datetime
    next_at: datetime | None
    last_at: datetime | None
    asked_at: datetime


class TickRow(NamedTuple):
    schedule: str
    planned_at: datetime
    until: datetime | None
    times: int
    outcome: str
    job_id: UUID | None
    recorded_at: datetime
    by: str | None
    job_state: str | None


def find_due(term: Term, *, limit: int, skipped: Iterable[str] = (), now: datetime | None = None) -> Query[DueRow]:
    """`skipped` are versions of schedules that are left out."""
    values = {"limit": limit, "skipped": array_literal(list(skipped)), "patience": PATIENCE, "now": now}
    return Query("schedules/find_due", DueRow, {**guard(term), **values})


def record_ticks(
    term: Term, moves: Iterable[ScheduleMove], *, listing: bool = False, now: datetime | None = None
) -> Query[RecordedTicksRow]:
    moved = json.dumps([_move_fields(move) for move in moves])
    return Query(
        "schedules/record_ticks",
        RecordedTicksRow,
        {**guard(term), "moves": moved, "grace": GRACE.total_seconds(), "listing": listing, "now": now},
    )


def _move_fields(move: ScheduleMove) -> dict[str, object]:
    return {
        "name": move.name,
        "version": move.version,
        "since": move.since.isoformat(),
        "next_at": move.next_at.isoformat(),
        "ticks": [_tick_fields(tick) for tick in move.ticks],
    }


def _tick_fields(tick: PlannedTick) -> dict[str, object]:
    return {
        "planned_at": tick.planned_at.isoformat(),
        "until": None if tick.until is None else tick.until.isoformat(),
        "times": tick.times,
        "missed": tick.missed,
        "job_id": None if tick.job_id is None else str(tick.job_id),
        "run_at": None if tick.run_at is None else tick.run_at.isoformat(),
    }


def release_ticks(
    term: Term, *, limit: int, listing: bool = False, pick: Pick = ALL, now: datetime | None = None
) -> Query[ReleasedRow]:
    times = {"grace": GRACE.total_seconds(), "patience": PATIENCE, "now": now}
    return Query("schedules/release_ticks", ReleasedRow, {**guard(term), **times, "listing": listing, **pick.values(limit)})


def clean_ticks(term: Term, *, limit: int, keep: float, pick: Pick = ALL, now: datetime | None = None) -> Query[CleanedRow]:
    """`keep` is in seconds."""
    return Query("schedules/clean_ticks", CleanedRow, {**guard(term), "keep": keep, "now": now, **pick.values(limit)})


def rewind(term: Term, *, pick: Pick = ALL, now: datetime | None = None) -> Query[RewoundRow]:
    values = {**guard(term), "grace": GRACE.total_seconds(), "now": now, **pick.unlimited()}
    return Query("schedules/rewind_schedules", RewoundRow, values)


def retire(term: Term, *, pick: Pick = ALL) -> Query[RetiredRow]:
    return Query("schedules/retire_schedules", RetiredRow, {**guard(term), **pick.unlimited()})


# By an app that starts


def declare_app(supervisor_id: str, owner: str, *, kinds: Iterable[str], schedules: Iterable[str]) -> Query[None]:
    values = {"supervisor_id": supervisor_id, "owner": owner, "kinds": _names(kinds), "schedules": _names(schedules)}
    return Query("schedules/declare_app", None, values)


def withdraw_app(supervisor_id: str) -> Query[None]:
    return Query("schedules/withdraw_app", None, {"supervisor_id": supervisor_id})


def reconcile(
    owner: str, declared: Iterable[Mapping[str, Any]], *, supervisor_id: str, kinds: Iterable[str]
) -> Query[ReconciledRow]:
    """`declared` are schedules as JSON, `kinds` all that the app has."""
    values = {
        "owner": owner,
        "declared": json.dumps(list(declared)),
        "supervisor_id": supervisor_id,
        "kinds": _names(kinds),
        "grace": GRACE.total_seconds(),
        "patience": PATIENCE,
    }
    return Query("schedules/reconcile_schedules", ReconciledRow, values)


def _names(names: Iterable[str]) -> str:
    return array_literal(sorted(names))


# By people


def create(schedule: Schedule, *, paused: bool, by: str | None) -> Query[str]:
    """Returns its name; no row if the name is taken."""
    return Query("schedules/create_schedule", TEXT, {"definition": json.dumps(schedule.to_json()), "paused": paused, "by": by})


def change(schedule: Schedule, *, changed_at: datetime, by: str | None) -> Query[str]:
    values = {
        "definition": json.dumps(schedule.to_json()),
        "changed_at": changed_at,
        "grace": GRACE.total_seconds(),
        "by": by,
    }
    return Query("schedules/change_schedule", TEXT, values)


def pause(name: str, *, reason: str | None, by: str | None) -> Query[str]:
    return Query("schedules/pause_schedule", TEXT, {"name": name, "reason": reason, "by": by})


def resume(name: str) -> Query[bool]:
    """Returns whether it was paused; no row if there is none of that name."""
    return Query("schedules/resume_schedule", BOOLEAN, {"name": name})


def delete(name: str) -> Query[str]:
    return Query("schedules/delete_schedule", TEXT, {"name": name})


def run(name: str, job_id: UUID, *, input: str | None, by: str | None) -> Query[RunRow]:  # noqa: A002 - the word for it
    return Query("schedules/run_schedule", RunRow, {"name": name, "job_id": str(job_id), "input": input, "by": by})


def find(name: str) -> Query[ScheduleRow]:
    return Query("schedules/find_schedule", ScheduleRow, {"name": name})


def list_all(*, retired: bool, owner: str | None) -> Query[ScheduleRow]:
    return Query("schedules/list_schedules", ScheduleRow, {"retired": retired, "owner": owner})


def list_ticks(name: str, *, limit: int, before: datetime | None) -> Query[TickRow]:
    return Query("schedules/list_ticks", TickRow, {"name": name, "limit": limit, "before": before})
