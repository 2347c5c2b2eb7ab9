"""The statements about schedules and their ticks, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.model.schedules import GRACE, Schedule
from tenure.store.leases import Term
from tenure.store.query import Query

CHANGED = "schedules"
"""The word that a schedule was made or changed: the leader works out its next time."""

PATIENCE = 600.0
"""Seconds for which a retired schedule may come back as if it had never gone: old code that starts among new retires what only
the new declares, until the next of the new starts."""


# By the leader


def find_due(term: Term, *, limit: int, now: datetime | None = None) -> Query:
    """Gives (holds, now, seconds until the next, are there queued ticks, schedules as JSON)."""
    values = {
        "duty": term.duty,
        "holder": term.holder,
        "term": term.term,
        "limit": limit,
        "patience": PATIENCE,
        "now": now,
    }
    return Query("schedules/find_due", values)


def record_ticks(term: Term, moves: Iterable[Mapping[str, Any]], *, channel: str, now: datetime | None = None) -> Query:
    """Gives (holds, schedules moved, jobs handed in, words told)."""
    values = {
        "duty": term.duty,
        "holder": term.holder,
        "term": term.term,
        "moves": json.dumps(list(moves)),
        "grace": GRACE.total_seconds(),
        "channel": channel,
        "now": now,
    }
    return Query("schedules/record_ticks", values)


def release_ticks(term: Term, *, limit: int, channel: str, now: datetime | None = None) -> Query:
    """Gives (holds, jobs handed in, queues told, dropped, schedules moved)."""
    values = {
        "duty": term.duty,
        "holder": term.holder,
        "term": term.term,
        "limit": limit,
        "grace": GRACE.total_seconds(),
        "patience": PATIENCE,
        "channel": channel,
        "now": now,
    }
    return Query("schedules/release_ticks", values)


def clean_ticks(term: Term, *, limit: int, keep: float, now: datetime | None = None) -> Query:
    """Gives (holds, removed). `keep` is in seconds."""
    values = {"duty": term.duty, "holder": term.holder, "term": term.term, "limit": limit, "keep": keep, "now": now}
    return Query("schedules/clean_ticks", values)


# By an app that starts


def reconcile(owner: str, declared: Iterable[Mapping[str, Any]]) -> Query:
    """Gives (name, what was done, owner before). `declared` are schedules as JSON."""
    values = {
        "owner": owner,
        "declared": json.dumps(list(declared)),
        "grace": GRACE.total_seconds(),
        "patience": PATIENCE,
    }
    return Query("schedules/reconcile_schedules", values)


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
