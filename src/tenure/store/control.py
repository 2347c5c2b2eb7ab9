"""The statements by which people, and the leader, look after jobs and queues, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from tenure.store.leases import Term, guard
from tenure.store.query import ALL, Pick, Query, array_literal

# Deciding


def cancel(
    ids: Iterable[UUID],
    *,
    states: Iterable[str] | None = None,
    error: str,
    reason: str | None = None,
    by: str | None = None,
    now: datetime | None = None,
) -> Query:
    values = {
        "ids": _ids(ids),
        "states": None if states is None else array_literal(sorted(states)),
        "error": error,
        "reason": reason,
        "by": by,
        "now": now,
    }
    return Query("control/cancel_jobs", values)


def retry(job_id: UUID, by: str | None) -> Query:
    return Query("control/retry_job", {"id": str(job_id), "by": by})


def retry_finished(job_id: UUID, new_id: UUID, by: str | None) -> Query:
    return Query("control/retry_finished", {"id": str(job_id), "new_id": str(new_id), "by": by})


def replay(ids: Iterable[UUID], *, input: str | None = None, priority: int | None = None, by: str | None = None) -> Query:  # noqa: A002
    return Query("control/replay_jobs", {"ids": _ids(ids), "input": input, "priority": priority, "by": by})


def delete(ids: Iterable[UUID], *, force: bool = False) -> Query:
    return Query("control/delete_jobs", {"ids": _ids(ids), "force": force})


def pause(queue: str, reason: str | None, by: str | None) -> Query:
    return Query("control/pause_queue", {"queue": queue, "reason": reason, "by": by})


def resume(queue: str) -> Query:
    return Query("control/resume_queue", {"queue": queue})


# Looking


def count_live() -> Query:
    return Query("control/count_live")


def count_finished() -> Query:
    return Query("control/count_finished")


def find_queues() -> Query:
    return Query("control/find_queues")


def find_workers() -> Query:
    return Query("control/find_workers")


def find_leaders() -> Query:
    return Query("control/find_leaders")


def explain(job_id: UUID) -> Query:
    return Query("control/explain_job", {"id": str(job_id)})


# Caretaking, by the leader


def merge_tallies(term: Term, *, limit: int, pick: Pick = ALL) -> Query:
    """Gives (holds, merged, places)."""
    return Query("control/merge_tallies", {**guard(term), **pick.values(limit)})


def clean_keys(term: Term, *, limit: int, after: tuple[str, str] | None = None, pick: Pick = ALL) -> Query:
    """Gives (holds, expired, freed, next kind, next key, places); give next kind and key as `after` the next time."""
    kind, key = after or ("", "")
    return Query("control/clean_keys", {**guard(term), "after_kind": kind, "after_key": key, **pick.values(limit)})


# All of these give (holds, removed, places). `keep` is in seconds.


def clean_progress(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    return Query("control/clean_progress", {**guard(term), "keep": keep, **pick.values(limit)})


def clean_logs(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    return Query("control/clean_logs", {**guard(term), "keep": keep, **pick.values(limit)})


def clean_incidents(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    return Query("control/clean_incidents", {**guard(term), "keep": keep, **pick.values(limit)})


def clean_dead(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    return Query("control/clean_dead", {**guard(term), "keep": keep, **pick.values(limit)})


def clean_watches(term: Term, *, limit: int, pick: Pick = ALL) -> Query:
    return Query("control/clean_watches", {**guard(term), **pick.values(limit)})


def clean_counters(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    """Keep them no less than history: a queue's kinds are found here."""
    return Query("control/clean_counters", {**guard(term), "keep": keep, **pick.values(limit)})


def clean_minutes(term: Term, *, limit: int, pick: Pick = ALL) -> Query:
    return Query("control/clean_minutes", {**guard(term), **pick.values(limit)})


def clean_latencies(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    return Query("control/clean_latencies", {**guard(term), "keep": keep, **pick.values(limit)})


def _ids(ids: Iterable[UUID]) -> str:
    return array_literal([str(job_id) for job_id in ids])
