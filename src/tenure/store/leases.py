"""The statements about duties and their leases, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tenure.store.query import Query


@dataclass(frozen=True, slots=True)
class Term:
    """The right to do a duty, for as long as nobody else was given a higher term. Every write of the duty carries it."""

    duty: str
    holder: str
    term: int
    ttl: float


def acquire(
    holder: str, duties: Iterable[tuple[str, float]], metadata: Mapping[str, object] | None = None, *, forced: bool = False
) -> Query:
    """`metadata` tells people where the holder is."""
    wanted = json.dumps([{"name": name, "ttl": ttl} for name, ttl in duties])
    values = {"holder": holder, "duties": wanted, "metadata": json.dumps(metadata or {}), "forced": forced}
    return Query("leases/acquire_leases", values)


def beat(holder: str, held: Iterable[Mapping[str, object]]) -> Query:
    """Each with name, term and ttl, and what was done since the last beat."""
    return Query("leases/beat_leases", {"holder": holder, "held": json.dumps(list(held))})


def release(holder: str, terms: Iterable[Term], *, channel: str, handing_over: bool = False) -> Query:
    held = json.dumps([{"name": term.duty, "term": term.term} for term in terms])
    return Query("leases/release_leases", {"holder": holder, "held": held, "channel": channel, "handing_over": handing_over})


def lock(key: int) -> Query:
    return Query("leases/lock_leadership", {"key": key})


def check(term: Term) -> Query:
    """One row while the term holds."""
    return Query("leases/check_lease", guard(term))


def promote(term: Term, *, limit: int, channel: str, now: datetime | None = None) -> Query:
    return Query("jobs/promote_jobs", {**guard(term), "limit": limit, "channel": channel, "now": now})


def condemn_expired(term: Term, *, reap: bool, now: datetime | None = None) -> Query:
    return Query("workers/condemn_workers", {**guard(term), "reap": reap, "now": now})


def condemn_unknown(term: Term) -> Query:
    """Gives (holds, ids of the workers that had no row and hold jobs)."""
    return Query("workers/condemn_unknown", guard(term))


def expire_jobs(term: Term, *, limit: int, max_crashes: int, channel: str, now: datetime | None = None) -> Query:
    values = {**guard(term), "limit": limit, "max_crashes": max_crashes, "channel": channel, "now": now}
    return Query("jobs/expire_jobs", values)


def keep_history(term: Term, *, days_ahead: int, keep: float) -> Query:
    return Query("history/keep_history", {**guard(term), "days_ahead": days_ahead, "keep": keep})


def clean_history(term: Term, *, limit: int, keep: float) -> Query:
    """Gives (holds, of kinds with a retention of their own, of others). `keep` is in seconds."""
    return Query("history/clean_history", {**guard(term), "limit": limit, "keep": keep})


def guard(term: Term) -> dict[str, object]:
    """What every write of a duty is checked by."""
    return {"duty": term.duty, "holder": term.holder, "term": term.term}
