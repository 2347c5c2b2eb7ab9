"""The statements about schedules and their ticks, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.model.schedules import GRACE, Schedule
from tenure.store.leases import Term, guard
from tenure.store.query import ALL, Pick, Query, array_literal

CHANGED = "schedules"
"""The word that a schedule was made or changed: the leader works out its next time."""

PATIENCE = 600.0
"""Seconds for which a retired schedule may come back as if it had never gone: old code that starts among new retires what only
the new declares, until the next of the new starts."""


# By the leader


def find_due(term: Term, *, limit: int, skipped: Iterable[str] = (), now: datetime | None = None) -> Query:
    """Gives (holds, now, seconds until the next, are there queued ticks, schedules as JSON). `skipped` are versions of schedules
    that are left out."""
    values = {"limit": limit, "skipped": array_literal(list(skipped)), "patience": PATIENCE, "now": now}
    return Query("schedules/find_due", {**guard(term), **values})


def record_ticks(term: Term, moves: Iterable[Mapping[str, Any]], *, listing: bool = False, now: datetime | None = None) -> Query:
    """Gives (holds, schedules moved, jobs enqueued, what to announce, ticks as JSON). Ticks are those that came to no job; with
    `listing` all."""
    moved = json.dumps(list(moves))
    return Query(
        "schedules/record_ticks",
        {**guard(term), "moves": moved, "grace": GRACE.total_seconds(), "listing": listing, "now": now},
    )


def release_ticks(term: Term, *, limit: int, listing: bool = False, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (holds, jobs enqueued, queues, dropped, schedules moved, ticks as JSON)."""
    times = {"grace": GRACE.total_seconds(), "patience": PATIENCE, "now": now}
    return Query("schedules/release_ticks", {**guard(term), **times, "listing": listing, **pick.values(limit)})


def clean_ticks(term: Term, *, limit: int, keep: float, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (holds, removed, places). `keep` is in seconds."""
    return Query("schedules/clean_ticks", {**guard(term), "keep": keep, "now": now, **pick.values(limit)})


def rewind(term: Term, *, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (holds, names)."""
    values = {**guard(term), "grace": GRACE.total_seconds(), "now": now, **pick.unlimited()}
    return Query("schedules/rewind_schedules", values)


def retire(term: Term, *, pick: Pick = ALL) -> Query:
    """Gives (holds, [name, owner] as JSON)."""
    return Query("schedules/retire_schedules", {**guard(term), **pick.unlimited()})


# By an app that starts


def declare_app(supervisor_id: str, owner: str, *, kinds: Iterable[str], schedules: Iterable[str]) -> Query:
    values = {"supervisor_id": supervisor_id, "owner": owner, "kinds": _names(kinds), "schedules": _names(schedules)}
    return Query("schedules/declare_app", values)


def withdraw_app(supervisor_id: str) -> Query:
    return Query("schedules/withdraw_app", {"supervisor_id": supervisor_id})


def reconcile(owner: str, declared: Iterable[Mapping[str, Any]], *, supervisor_id: str, kinds: Iterable[str]) -> Query:
    """Gives (name, what was done, owner before). `declared` are schedules as JSON, `kinds` all that the app has."""
    values = {
        "owner": owner,
        "declared": json.dumps(list(declared)),
        "supervisor_id": supervisor_id,
        "kinds": _names(kinds),
        "grace": GRACE.total_seconds(),
        "patience": PATIENCE,
    }
    return Query("schedules/reconcile_schedules", values)


def _names(names: Iterable[str]) -> str:
    return array_literal(sorted(names))


# By people


def create(schedule: Schedule, *, paused: bool, by: str | None) -> Query:
    return Query("schedules/create_schedule", {"definition": json.dumps(schedule.to_json()), "paused": paused, "by": by})


def change(schedule: Schedule, *, changed_at: datetime, by: str | None) -> Query:
    values = {
        "definition": json.dumps(schedule.to_json()),
        "changed_at": changed_at,
        "grace": GRACE.total_seconds(),
        "by": by,
    }
    return Query("schedules/change_schedule", values)


def pause(name: str, *, reason: str | None, by: str | None) -> Query:
    return Query("schedules/pause_schedule", {"name": name, "reason": reason, "by": by})


def resume(name: str) -> Query:
    return Query("schedules/resume_schedule", {"name": name})


def delete(name: str) -> Query:
    return Query("schedules/delete_schedule", {"name": name})


def run(name: str, job_id: UUID, *, input: str | None, by: str | None) -> Query:  # noqa: A002 - the word for it
    return Query("schedules/run_schedule", {"name": name, "job_id": str(job_id), "input": input, "by": by})


def find(name: str) -> Query:
    return Query("schedules/find_schedule", {"name": name})


def list_all(*, retired: bool, owner: str | None) -> Query:
    return Query("schedules/list_schedules", {"retired": retired, "owner": owner})


def list_ticks(name: str, *, limit: int, before: datetime | None) -> Query:
    return Query("schedules/list_ticks", {"name": name, "limit": limit, "before": before})
