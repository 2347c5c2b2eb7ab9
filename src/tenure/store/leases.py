"""The statements about duties and their leases, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from tenure.model.findings import Finding
from tenure.store.json_columns import Json
from tenure.store.query import ALL, BOOLEAN, INTEGER, TEXT, Pick, Query

LEASE = "lease:"
"""What the rows of users' own leases begin with: no duty is called so."""


@dataclass(frozen=True, slots=True)
class Term:
    """The right to do a duty, as long as no other process has a higher term. Every write of the duty carries it."""

    duty: str
    holder: str
    term: int
    ttl: float


class AcquiredRow(NamedTuple):
    won: Json[dict[str, int]]
    """The duties that the holder has now, with their terms."""
    free_in: float | None
    """Seconds until the first of the others may become free."""


class LeaderRow(NamedTuple):
    duty: str
    holder: UUID
    term: int
    acquired_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    metadata: Json[dict[str, Any]]
    findings: Json[list[Finding]]
    holds: bool
    stuck: bool


class ClockRow(NamedTuple):
    """How many rows count from now, after the server's clock was set back."""

    holds: bool
    workers: int
    jobs: int
    starts: int
    peeked: Json[list[str]]
    """The rows that would be changed."""


def acquire(
    holder: str, duties: Iterable[tuple[str, float]], metadata: Mapping[str, object] | None = None, *, forced: bool = False
) -> Query[AcquiredRow]:
    """`metadata` tells people where the holder is."""
    wanted = json.dumps([{"name": name, "ttl": ttl} for name, ttl in duties])
    values = {"holder": holder, "duties": wanted, "metadata": json.dumps(metadata or {}), "forced": forced}
    return Query("leases/acquire_leases", AcquiredRow, values)


def beat(holder: str, held: Iterable[Mapping[str, object]]) -> Query[str]:
    """Each with name, term and ttl, and what was done since the last beat. Returns the names of those renewed."""
    return Query("leases/beat_leases", TEXT, {"holder": holder, "held": json.dumps(list(held))})


def release(holder: str, terms: Iterable[Term], *, handing_over: bool = False) -> Query[str]:
    """Returns the names of those released. Announce it, so that candidates need not wait."""
    held = json.dumps([{"name": term.duty, "term": term.term} for term in terms])
    return Query("leases/release_leases", TEXT, {"holder": holder, "held": held, "handing_over": handing_over})


def release_all(holder: str) -> Query[str]:
    """The same for all that this holder has, known to it or not."""
    return Query("leases/release_all_leases", TEXT, {"holder": holder})


def lock(key: int) -> Query[bool]:
    return Query("leases/lock_leadership", BOOLEAN, {"key": key})


def unlock(key: int) -> Query[bool]:
    return Query("leases/unlock_leadership", BOOLEAN, {"key": key})


def check(term: Term) -> Query[int]:
    """One row while the term holds."""
    return Query("leases/check_lease", INTEGER, guard(term))


def follow_clock(term: Term, *, pick: Pick = ALL, now: datetime | None = None) -> Query[ClockRow]:
    return Query("leases/follow_clock", ClockRow, {**guard(term), "now": now, **pick.unlimited()})


def find_leaders() -> Query[LeaderRow]:
    return Query("leases/find_leaders", LeaderRow)


def bound_locks(milliseconds: int) -> Query[str]:
    """For the current transaction: how long a statement waits for a lock."""
    return Query("leases/bound_locks", TEXT, {"milliseconds": milliseconds})


def guard(term: Term) -> dict[str, object]:
    """What every write of a duty is checked by."""
    return {"duty": term.duty, "holder": term.holder, "term": term.term}
