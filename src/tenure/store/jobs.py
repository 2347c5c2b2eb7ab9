"""The statements about jobs, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.model.claimed_job import ClaimedJob
from tenure.store.claim_replies import ClaimReply
from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.moved_jobs import CanceledExpiredRow, ExpiredRow, PromotedRow, ReturnedRow
from tenure.store.query import ALL, TEXT, Pick, Query, array_literal
from tenure.store.statements import SKIPPING
from tenure.store.workers import MAX_CRASHES


class JobRow(NamedTuple):
    """A job, live or finished."""

    id: UUID
    kind: str
    queue: str
    state: str
    priority: int
    capability: str | None
    attempt: int
    max_attempts: int
    crashes: int
    fence: int
    worker_id: UUID | None
    enqueued_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    input: str | None
    """JSON, as are `output`, `auth`, `meta` and `system`."""
    output: str | None
    timeout: float | None
    key: str | None
    parent_id: UUID | None
    enqueued_by: str | None
    auth: str | None
    meta: str | None
    system: str | None
    limit_group: str | None
    progress_percent: float
    progress_message: str | None
    failed_at: datetime | None
    chain_id: UUID
    """Its own id if it starts the chain."""
    next_id: UUID | None
    """The next link of the chain, which this one created when it completed."""
    expires_at: datetime | None
    """When it is canceled if it was not started. None: never, or it was started."""
    heartbeat_at: datetime | None
    """Of the worker that holds it."""


# Enqueuing


class ExistingJobRow(NamedTuple):
    """A job that was not written because another one has its key."""

    requested_id: str
    """The id of the job that was to be written."""
    id: str
    """The job that has the key."""
    differs: bool
    """Its input is another."""


def enqueue(jobs: str, *, again: bool = False, borrowed: bool = False) -> Query[ExistingJobRow]:
    return Query("jobs/enqueue_jobs", ExistingJobRow, {"jobs": jobs, "again": again, "borrowed": borrowed})


def enqueue_one(job: str) -> Query[ExistingJobRow]:
    """A plain job: without a key, blockers, times and a parent."""
    return Query("jobs/enqueue_one", ExistingJobRow, {"job": job})


def enqueue_one_borrowed(job: str, channel: str, payload: str | None) -> Query[ExistingJobRow]:
    """The same in a transaction of the caller."""
    return Query("jobs/enqueue_one_borrowed", ExistingJobRow, {"job": job, "channel": channel, "payload": payload})


def enqueue_borrowed(jobs: str, channel: str, payloads: str) -> Query[ExistingJobRow]:
    return Query("jobs/enqueue_borrowed", ExistingJobRow, {"jobs": jobs, "channel": channel, "payloads": payloads})


# Claiming


class ClaimRow(NamedTuple):
    reply: Json[ClaimReply | None]
    """In the first row, and only there."""
    job: ClaimedJob
    """In every other row. In the first one, all of its fields are None."""


def claim(
    *,
    worker_id: str,
    claim_id: str,
    lanes: str,
    limit: int,
    kinds: str,
    capabilities: str,
    leases: str,
    which: str,
    limits: int = 0,
    now: datetime | None = None,
) -> Query[ClaimRow]:
    """`limits` is the version of the limits that the worker knows."""
    values = {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "lanes": lanes,
        "limit": limit,
        "kinds": kinds,
        "capabilities": capabilities,
        "leases": leases,
        "which": which,
        "limits": limits,
        "now": now,
    }
    return Query("jobs/claim_jobs", ClaimRow, values)


# Settling


class FinishedRuns(NamedTuple):
    """Runs to settle, as literals: thousands a second, so nothing is encoded twice."""

    ids: str
    """uuid[]: the jobs."""
    claims: str
    """uuid[]: the claims of these runs, each once."""
    outcomes: str
    """JSON: by job, [claim, output, state, error]. What is left out at the end is null."""


class SettledRow(NamedTuple):
    """A job that was written."""

    id: str
    watched: bool
    """A client waits for it."""
    dependants: bool
    """Its chain has ended, and jobs wait for that: the resolver is to be notified."""


class UpdatedRunRow(NamedTuple):
    """A run whose report was written."""

    id: str
    watched: bool


class MovedRow(NamedTuple):
    """A job that was written and is still live."""

    id: str
    watched: bool
    dependants: bool
    """It became a dead letter, and jobs wait for its chain."""
    state: str
    """As asked for, or `dead_letter` if its process died too often."""
    error: str | None


class EnteredRow(NamedTuple):
    xact: str
    """The id of the current transaction."""
    seen: bool
    """The job is there, under the claim."""


class TransactionRow(NamedTuple):
    xact: str
    """The id of the current transaction."""
    committed: bool
    """The transaction that was asked for is committed."""


def finish(
    runs: FinishedRuns, *, skipping: bool = False, xact: str | None = None, now: datetime | None = None
) -> Query[SettledRow]:
    """`xact`: write nothing unless this is the id of the current transaction. `skipping`: leave out jobs whose row another
    transaction has locked. Otherwise all wait for it, which is faster as long as no row is locked."""
    return Query("jobs/finish_jobs" + SKIPPING * skipping, SettledRow, {**runs._asdict(), "xact": xact, "now": now})


def move(outcomes: str, *, skipping: bool = False, xact: str | None = None, now: datetime | None = None) -> Query[MovedRow]:
    values = {"outcomes": outcomes, "xact": xact, "max_crashes": MAX_CRASHES, "now": now}
    return Query("jobs/move_jobs" + SKIPPING * skipping, MovedRow, values)


def find_settled(outcomes: str) -> Query[str]:
    """Returns the ids."""
    return Query("jobs/find_settled", TEXT, {"outcomes": outcomes})


def enter_transaction(job_id: str, claim_id: str) -> Query[EnteredRow]:
    return Query("jobs/enter_transaction", EnteredRow, {"id": job_id, "claim_id": claim_id})


def check_transaction(xact: str) -> Query[TransactionRow]:
    return Query("jobs/check_transaction", TransactionRow, {"xact": xact})


# What runs report, and who reads it


class ProgressRow(NamedTuple):
    percent: float
    message: str | None
    updated_at: datetime


class StateCountRow(NamedTuple):
    state: str
    jobs: int


def write_updates(updates: str, keep_lines: int, *, now: datetime | None = None) -> Query[UpdatedRunRow]:
    return Query("jobs/write_updates", UpdatedRunRow, {"updates": updates, "keep_lines": keep_lines, "now": now})


def watch(job_id: str, seconds: float) -> Query[None]:
    return Query("jobs/watch_job", None, {"id": job_id, "seconds": seconds})


def find_progress(job_id: str) -> Query[ProgressRow]:
    return Query("jobs/find_progress", ProgressRow, {"id": job_id})


def find(job_id: str) -> Query[JobRow]:
    return Query("jobs/find_job", JobRow, {"id": job_id})


def find_all(ids: Iterable[UUID]) -> Query[JobRow]:
    return Query("jobs/find_jobs", JobRow, {"ids": _ids(ids)})


def count_states(since: str) -> Query[StateCountRow]:
    return Query("jobs/count_states", StateCountRow, {"since": since})


# Decisions of people


class EndedRow(NamedTuple):
    """A job that was to be canceled or deleted."""

    id: UUID
    done: bool
    """If not, ask again."""
    ran: bool
    watched: bool
    dependants: bool
    """Jobs wait for the end of its chain."""
    kind: str
    undoing: str | None
    """The queue in which a canceled workflow runs once more, to undo what it has done."""


class RetriedRow(NamedTuple):
    state: str
    """Before."""
    moved: bool
    queue: str
    kind: str
    holder: UUID | None
    """The job that has its key."""


class RerunRow(NamedTuple):
    """A new job that was made of a finished one."""

    queue: str
    kind: str
    id: UUID
    existed: bool
    """Another job has its key: `id` is that one."""


class ReplayedRow(NamedTuple):
    id: UUID
    queue: str
    moved: bool
    kind: str
    holder: UUID | None
    """The job that has its key."""


def cancel(
    ids: Iterable[UUID],
    *,
    states: Iterable[str] | None = None,
    error: str,
    reason: str | None = None,
    by: str | None = None,
    force: bool = False,
    now: datetime | None = None,
) -> Query[EndedRow]:
    """`force`: also workflows that roll back, and without undoing anything."""
    values = {
        "ids": _ids(ids),
        "states": None if states is None else array_literal(sorted(states)),
        "error": error,
        "reason": reason,
        "by": by,
        "force": force,
        "now": now,
    }
    return Query("jobs/cancel_jobs", EndedRow, values)


def delete(ids: Iterable[UUID], *, force: bool = False) -> Query[EndedRow]:
    return Query("jobs/delete_jobs", EndedRow, {"ids": _ids(ids), "force": force})


def retry(job_id: UUID, by: str | None) -> Query[RetriedRow]:
    return Query("jobs/retry_job", RetriedRow, {"id": str(job_id), "by": by})


def retry_finished(job_id: UUID, new_id: UUID, by: str | None) -> Query[RerunRow]:
    return Query("jobs/retry_finished", RerunRow, {"id": str(job_id), "new_id": str(new_id), "by": by})


def replay(
    ids: Iterable[UUID],
    *,
    input: str | None = None,  # noqa: A002
    priority: int | None = None,
    by: str | None = None,
) -> Query[ReplayedRow]:
    return Query("jobs/replay_jobs", ReplayedRow, {"ids": _ids(ids), "input": input, "priority": priority, "by": by})


def _ids(ids: Iterable[UUID]) -> str:
    return array_literal([str(job_id) for job_id in ids])


# Moves by the leader and by supervisors


def promote(
    term: Term, *, limit: int, listing: bool = False, pick: Pick = ALL, now: datetime | None = None
) -> Query[PromotedRow]:
    return Query("jobs/promote_jobs", PromotedRow, {**guard(term), "listing": listing, "now": now, **pick.values(limit)})


def cancel_expired(term: Term, *, limit: int, pick: Pick = ALL, now: datetime | None = None) -> Query[CanceledExpiredRow]:
    return Query("jobs/cancel_expired", CanceledExpiredRow, {**guard(term), "now": now, **pick.values(limit)})


def expire(term: Term, *, limit: int, max_crashes: int, pick: Pick = ALL, now: datetime | None = None) -> Query[ExpiredRow]:
    values = {**guard(term), "max_crashes": max_crashes, "now": now, **pick.values(limit)}
    return Query("jobs/expire_jobs", ExpiredRow, values)


def return_jobs(worker_id: str | None, *, limit: int = 500, pick: Pick = ALL) -> Query[ReturnedRow]:
    """Of one condemned worker, or of all."""
    values = {"worker_id": worker_id, "max_crashes": MAX_CRASHES, **pick.values(limit)}
    return Query("jobs/return_jobs", ReturnedRow, values)
