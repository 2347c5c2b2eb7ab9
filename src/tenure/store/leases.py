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


def acquire(holder: str, duties: Iterable[tuple[str, float]], metadata: Mapping[str, object] | None = None) -> Query:
    """`metadata` tells people where the holder is."""
    wanted = json.dumps([{"name": name, "ttl": ttl} for name, ttl in duties])
    return Query("leases/acquire_leases", {"holder": holder, "duties": wanted, "metadata": json.dumps(metadata or {})})


def release(holder: str, terms: Iterable[Term]) -> Query:
    held = json.dumps([{"name": term.duty, "term": term.term} for term in terms])
    return Query("leases/release_leases", {"holder": holder, "held": held})


def promote(term: Term, *, limit: int, channel: str, now: datetime | None = None) -> Query:
    return Query("jobs/promote_jobs", {**_guard(term), "limit": limit, "channel": channel, "now": now})


def condemn_expired(term: Term, *, reap: bool, now: datetime | None = None) -> Query:
    return Query("workers/condemn_workers", {**_guard(term), "reap": reap, "now": now})


def expire_jobs(term: Term, *, limit: int, max_crashes: int, channel: str, now: datetime | None = None) -> Query:
    values = {**_guard(term), "limit": limit, "max_crashes": max_crashes, "channel": channel, "now": now}
    del values["ttl"]
    return Query("jobs/expire_jobs", values)


def keep_history(term: Term, *, days_ahead: int, keep: float) -> Query:
    return Query("history/keep_history", {**_guard(term), "days_ahead": days_ahead, "keep": keep})


def _guard(term: Term) -> dict[str, object]:
    return {"duty": term.duty, "holder": term.holder, "term": term.term, "ttl": term.ttl}
