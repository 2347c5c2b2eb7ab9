"""The statements by which the leader counts what was done and removes what is old, as values. `keep` is in seconds."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.query import ALL, Pick, Query


class CleanedRow(NamedTuple):
    holds: bool
    removed: int
    peeked: Json[list[str]]
    """The rows that would be removed."""


class CleanedKeysRow(NamedTuple):
    holds: bool
    expired: int
    freed: int
    next_kind: str | None
    """Where to continue; None: the end was reached."""
    next_key: str | None
    peeked: Json[list[str]]


class WalkedRow(NamedTuple):
    """The answer of a statement that checks all rows of a table in turn."""

    holds: bool
    removed: int
    next: UUID | None
    """Where to continue; None: the end was reached."""
    peeked: Json[list[str]]


class MergedRow(NamedTuple):
    holds: bool
    merged: int
    peeked: Json[list[str]]


def merge_tallies(term: Term, *, limit: int, pick: Pick = ALL) -> Query[MergedRow]:
    return Query("cleaning/merge_tallies", MergedRow, {**guard(term), **pick.values(limit)})


def clean_keys(term: Term, *, limit: int, after: tuple[str, str] | None = None, pick: Pick = ALL) -> Query[CleanedKeysRow]:
    """Give `next_kind` and `next_key` as `after` the next time."""
    kind, key = after or ("", "")
    values = {**guard(term), "after_kind": kind, "after_key": key, **pick.values(limit)}
    return Query("cleaning/clean_keys", CleanedKeysRow, values)


def clean_progress(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_progress", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_audit(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_audit", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_logs(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_logs", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_incidents(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_incidents", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_dead(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_dead", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_watches(term: Term, *, limit: int, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_watches", CleanedRow, {**guard(term), **pick.values(limit)})


def clean_counters(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    """Keep them no less than history: a queue's kinds are found here."""
    return Query("cleaning/clean_counters", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_minutes(term: Term, *, limit: int, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_minutes", CleanedRow, {**guard(term), **pick.values(limit)})


def clean_fleet_minutes(term: Term, *, limit: int, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_fleet_minutes", CleanedRow, {**guard(term), **pick.values(limit)})


def clean_latencies(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_latencies", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


FIRST = UUID(int=0)


def clean_blocked(term: Term, *, limit: int, after: UUID | None = None, pick: Pick = ALL) -> Query[WalkedRow]:
    """Give `next` as `after` the next time."""
    return Query("cleaning/clean_blocked", WalkedRow, {**guard(term), "after": str(after or FIRST), **pick.values(limit)})


def clean_endings(term: Term, *, limit: int, after: UUID | None = None, pick: Pick = ALL) -> Query[WalkedRow]:
    return Query("cleaning/clean_endings", WalkedRow, {**guard(term), "after": str(after or FIRST), **pick.values(limit)})


def clean_steps(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_steps", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_events(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_events", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_waits(term: Term, *, limit: int, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("cleaning/clean_waits", CleanedRow, {**guard(term), **pick.values(limit)})
