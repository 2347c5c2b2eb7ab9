"""Jobs that a statement of the leader or of a supervisor has moved, as it reports them, and the rows that have them."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from tenure.store.json_columns import Json


class MovedJob(NamedTuple):
    """A job that is pending now."""

    job_id: UUID
    kind: str
    queue: str


class UnblockedJob(NamedTuple):
    job_id: UUID
    kind: str
    queue: str
    was: str
    """The state before: blocked, or waiting for a workflow."""
    state: str


class EndedBlockedJob(NamedTuple):
    """A job that ended without a run, because of a chain that it waited for."""

    job_id: UUID
    kind: str
    queue: str
    state: str
    """pending: a workflow that is to be rolled back."""
    error: str | None
    watched: bool
    """A client waits for it."""
    dependants: bool
    """Jobs wait for its chain, which has ended."""


class ExpiredJob(NamedTuple):
    """A job that was canceled, because it was not started before it expired."""

    job_id: UUID
    kind: str
    reason: str
    dependants: bool
    watched: bool


class ReapedJob(NamedTuple):
    """A job that was taken from its worker: requeued or quarantined."""

    job_id: UUID
    kind: str
    queue: str
    worker_id: UUID
    """Which worker held it, its name and its host. The row of that worker is deleted, so nothing else names it afterwards."""
    worker: str | None
    host: str | None
    why: str
    """crashed, lease_lost, stopped, or expired: the job's own lease."""
    quarantined: bool
    crashes: int
    error: str | None
    watched: bool
    dependants: bool


# What the statements return that move them


class PromotedRow(NamedTuple):
    holds: bool
    promoted: int
    queues: list[str]
    next_due: float | None
    """Seconds until the next one is due."""
    jobs: Json[list[MovedJob]]
    """Empty unless `listing`."""
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class CanceledExpiredRow(NamedTuple):
    holds: bool
    canceled: int
    next_due: float | None
    """Seconds until the next job expires."""
    jobs: Json[list[ExpiredJob]]
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class ExpiredRow(NamedTuple):
    requeued: int
    quarantined: int
    queues: list[str]
    jobs: Json[list[ReapedJob]]
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class ReturnedRow(NamedTuple):
    requeued: int
    quarantined: int
    more: bool
    """There may be more."""
    queues: list[str]
    jobs: Json[list[ReapedJob]]
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""
