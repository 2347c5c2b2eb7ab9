"""The statements about the partitions of history and what is kept in them, as values. `keep` is in seconds."""

from __future__ import annotations

from tenure.store.leases import Term, guard
from tenure.store.query import ALL, Pick, Query


def drop(term: Term, *, keep: float) -> Query:
    """Gives (name or None); no row when the term is over."""
    return Query("history/drop_history", {**guard(term), "keep": keep})


def make(term: Term, *, days_ahead: int) -> Query:
    """Gives (how many); no row when the term is over."""
    return Query("history/make_history", {**guard(term), "days_ahead": days_ahead})


def clean(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    """Gives (holds, of kinds with a retention of their own, of others, ids)."""
    return Query("history/clean_history", {**guard(term), "keep": keep, **pick.values(limit)})


def clean_default(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query:
    """Gives (holds, removed, places)."""
    return Query("history/clean_default", {**guard(term), "keep": keep, **pick.values(limit)})
