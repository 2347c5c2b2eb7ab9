"""The statements about duties and their leases, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
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


@dataclass(slots=True, kw_only=True)
class LeaseHeartbeat:
    """Renews a lease, and reports what its holder did since the last heartbeat."""

    name: str
    term: int
    ttl: float
    runs: int = 0
    items: int = 0
    errors: int = 0
    seconds: float = 0.0
    """How long all rounds took together."""
    ago: float | None = None
    """Seconds since the last round ended."""
    last_seconds: float | None = None
    next: float | None = None
    """Seconds until the next round."""
    last_error: str | None = None
    findings: list[Finding] | None = None
    """Of the last round. None: those that are stored stay."""

    def to_fields(self) -> dict[str, object]:
        """JSON values for the statement. Findings are also rendered for people who read the row."""
        given = {name: value for name, value in asdict(self).items() if value is not None and name != "findings"}
        if self.findings is None:
            return given
        lines, values = [finding.line for finding in self.findings], [asdict(finding) for finding in self.findings]
        return {**given, "findings": lines, "found": values}


def acquire(
    holder: str, duties: Iterable[tuple[str, float]], metadata: Mapping[str, object] | None = None, *, forced: bool = False
) -> Query[AcquiredRow]:
    """`metadata` is shown to operators: where the holder runs."""
    wanted = json.dumps([{"name": name, "ttl": ttl} for name, ttl in duties])
    values = {"holder": holder, "duties": wanted, "metadata": json.dumps(metadata or {}), "forced": forced}
    return Query("leases/acquire_leases", AcquiredRow, values)


def beat(holder: str, held: Iterable[LeaseHeartbeat]) -> Query[str]:
    """Returns the names of those renewed."""
    return Query("leases/beat_leases", TEXT, {"holder": holder, "held": json.dumps([one.to_fields() for one in held])})


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
