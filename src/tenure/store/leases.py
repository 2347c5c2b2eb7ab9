"""The statements about duties and their leases, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tenure.store.query import ALL, Pick, Query

LEASE = "lease:"
"""What the rows of users' own leases begin with: no duty is called so."""


def lease_free(name: str) -> str:
    """The word that a user's own lease was released."""
    return f"lease {name}"


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


def release(holder: str, terms: Iterable[Term], *, handing_over: bool = False) -> Query:
    """Gives the names of those released. Announce it, so that candidates need not wait."""
    held = json.dumps([{"name": term.duty, "term": term.term} for term in terms])
    return Query("leases/release_leases", {"holder": holder, "held": held, "handing_over": handing_over})


def release_all(holder: str) -> Query:
    """The same for all that this holder has, known to it or not."""
    return Query("leases/release_all_leases", {"holder": holder})


def lock(key: int) -> Query:
    return Query("leases/lock_leadership", {"key": key})


def unlock(key: int) -> Query:
    return Query("leases/unlock_leadership", {"key": key})


def check(term: Term) -> Query:
    """One row while the term holds."""
    return Query("leases/check_lease", guard(term))


def promote(term: Term, *, limit: int, listing: bool = False, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (holds, promoted, queues, seconds until the next is due, jobs as JSON if `listing`)."""
    return Query("jobs/promote_jobs", {**guard(term), "listing": listing, "now": now, **pick.values(limit)})


def condemn_expired(term: Term, *, reap: bool, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (holds, condemned, whether condemned ones wait, seconds until the next lease ends, whether jobs are overdue, ids)."""
    return Query("workers/condemn_workers", {**guard(term), "reap": reap, "now": now, **pick.unlimited()})


def condemn_unknown(term: Term, *, pick: Pick = ALL) -> Query:
    """Gives (holds, ids of the workers that had no row and hold jobs)."""
    return Query("workers/condemn_unknown", {**guard(term), **pick.unlimited()})


def expire_jobs(term: Term, *, limit: int, max_crashes: int, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (requeued, quarantined, queues, the jobs as JSON)."""
    return Query("jobs/expire_jobs", {**guard(term), "max_crashes": max_crashes, "now": now, **pick.values(limit)})


def follow_clock(term: Term, *, pick: Pick = ALL, now: datetime | None = None) -> Query:
    """Gives (holds, workers, jobs, starts, rows)."""
    return Query("leases/follow_clock", {**guard(term), "now": now, **pick.unlimited()})


def guard(term: Term) -> dict[str, object]:
    """What every write of a duty is checked by."""
    return {"duty": term.duty, "holder": term.holder, "term": term.term}
