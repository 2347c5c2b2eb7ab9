"""The statements about the partitions of history and what is kept in them, as values. `keep` is in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from tenure.store.cleaning import CleanedRow
from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.query import ALL, INTEGER, OPTIONAL_TEXT, Pick, Query


class CleanedHistoryRow(NamedTuple):
    holds: bool
    removed_own: int
    """Jobs of kinds that have a retention of their own."""
    removed_others: int
    peeked: Json[list[str]]
    """The ids of the jobs that would be removed."""


def drop(term: Term, *, keep: float) -> Query[str | None]:
    """Returns the name of the dropped partition, or None; no row when the term is over."""
    return Query("history/drop_history", OPTIONAL_TEXT, {**guard(term), "keep": keep})


def make(term: Term, *, days_ahead: int) -> Query[int]:
    """Returns how many were made; no row when the term is over."""
    return Query("history/make_history", INTEGER, {**guard(term), "days_ahead": days_ahead})


def clean(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedHistoryRow]:
    return Query("history/clean_history", CleanedHistoryRow, {**guard(term), "keep": keep, **pick.values(limit)})


def clean_default(term: Term, *, limit: int, keep: float, pick: Pick = ALL) -> Query[CleanedRow]:
    return Query("history/clean_default", CleanedRow, {**guard(term), "keep": keep, **pick.values(limit)})


def declare_retentions(kinds: Mapping[str, float | None]) -> Query[None]:
    """In seconds; None for as long as all others."""
    given = json.dumps([{"kind": kind, "keep": keep} for kind, keep in kinds.items()])
    return Query("history/declare_retentions", None, {"kinds": given})
