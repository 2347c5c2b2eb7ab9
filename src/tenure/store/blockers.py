"""The statements about jobs that wait for chains, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.moved_jobs import EndedBlockedJob, UnblockedJob
from tenure.store.query import ALL, INTEGER, Pick, Query, array_literal

MOST_GROUP_OUTPUTS = 10_000
"""A larger group has no output of its own: the outputs of its members are read one by one."""

MOST_GROUP_BYTES = 64 * 1024 * 1024
"""The same for a group whose outputs are longer than this in all, as JSON. PostgreSQL stores no JSON of more than 256 MB."""


class ResolverWorkRow(NamedTuple):
    """What there is to do for each part of a round."""

    holds: bool
    arm: bool
    resolve: bool
    release: bool
    """Jobs that wait for nothing more: to be unblocked, or ended."""
    events: bool


class ArmedRow(NamedTuple):
    holds: bool
    armed: int
    left_over: int
    """Blockers that could not be armed now: look at them again."""
    next: UUID | None
    """The last job of the batch, if there are more."""
    queues: list[str]
    peeked: Json[list[str]]
    """The jobs that wait for them."""


class ResolvedRow(NamedTuple):
    holds: bool
    endings: int
    notified: int
    """Jobs that wait for them."""
    ready: int
    """Of these, jobs that wait for nothing more."""
    peeked: Json[list[str]]
    """The chains."""


class UnblockedRow(NamedTuple):
    holds: bool
    moved: int
    queues: list[str]
    scheduled: bool
    """Some of them have to wait for their time."""
    jobs: Json[list[UnblockedJob]]
    """Empty unless `listing`."""
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class EndedBlockedRow(NamedTuple):
    holds: bool
    released: int
    queues: list[str]
    """Of workflows that are to be rolled back."""
    jobs: Json[list[EndedBlockedJob]]
    """Also the workflows that are to be rolled back."""
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class BlockerRow(NamedTuple):
    """A chain that a job waits for, or has waited for."""

    number: int
    chain_id: UUID
    ended: bool
    """What follows is null if not."""
    job_id: UUID | None
    """Its last link."""
    kind: str | None
    state: str | None
    output: str | None
    """JSON."""
    error: str | None


class DependentJobRow(NamedTuple):
    """A job that waits for a chain, or has waited for it."""

    id: UUID
    kind: str
    queue: str
    state: str


def find_resolver_work(term: Term) -> Query[ResolverWorkRow]:
    return Query("blockers/find_resolver_work", ResolverWorkRow, guard(term))


def arm(term: Term, *, limit: int, after: UUID | None = None, pick: Pick = ALL) -> Query[ArmedRow]:
    values = {**guard(term), "after": None if after is None else str(after), **pick.values(limit)}
    return Query("blockers/arm_blockers", ArmedRow, values)


def resolve(term: Term, *, limit: int, pick: Pick = ALL) -> Query[ResolvedRow]:
    return Query("blockers/resolve_endings", ResolvedRow, {**guard(term), **pick.values(limit)})


def unblock(
    term: Term, *, limit: int, listing: bool = False, pick: Pick = ALL, now: datetime | None = None
) -> Query[UnblockedRow]:
    values = {**guard(term), "listing": listing, "now": now, **pick.values(limit)}
    return Query("blockers/unblock_jobs", UnblockedRow, values)


def end_blocked(term: Term, *, limit: int, pick: Pick = ALL, now: datetime | None = None) -> Query[EndedBlockedRow]:
    most = {"most": MOST_GROUP_OUTPUTS, "most_bytes": MOST_GROUP_BYTES}
    values = {**guard(term), **most, "now": now, **pick.values(limit)}
    return Query("blockers/end_blocked", EndedBlockedRow, values)


def find(job_id: str, *, most: int, after: int = 0, outputs: bool = True) -> Query[BlockerRow]:
    values = {"job_id": job_id, "after": after, "most": most, "outputs": outputs}
    return Query("blockers/find_blockers", BlockerRow, values)


def find_dependent(chain_id: str, *, most: int) -> Query[DependentJobRow]:
    return Query("blockers/find_dependent_jobs", DependentJobRow, {"chain_id": chain_id, "most": most})


class BlockedRow(NamedTuple):
    """How far a job is that waits for chains."""

    total: int
    missing: int
    """Without the one that an open group counts for itself."""
    failed: UUID | None
    """The first chain that did not complete."""
    open: bool


def find_blocked(job_id: str) -> Query[BlockedRow]:
    return Query("blockers/find_blocked", BlockedRow, {"job_id": job_id})


def add_members(job_id: str, members: Iterable[UUID], *, expected: int) -> Query[int]:
    """Adds chains to an open group that has `expected` of them. Returns the new total; no row if it is not open or has others."""
    values = {"job_id": job_id, "members": array_literal([str(one) for one in members]), "expected": expected}
    return Query("blockers/add_members", INTEGER, values)


def close_group(job_id: str) -> Query[int]:
    """Returns the total; no row if it was closed already."""
    return Query("blockers/close_group", INTEGER, {"job_id": job_id})
