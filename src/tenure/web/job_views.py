"""A job as the API shows it: with our names, and beside them those that other trackers use (`status`, `last_error`, ...)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from typing_extensions import TypedDict

from tenure.client.status import JobStatus
from tenure.model.failures import Failure
from tenure.model.states import State

OVER = frozenset({State.COMPLETED, State.FAILED, State.CANCELED, State.DEAD_LETTER})
"""Final unless the job is retried or replayed."""

FAILED = frozenset({State.FAILED, State.DEAD_LETTER})


class TrackerView(TypedDict):
    """What the page of a user who started the job may see: no input, no traceback, nothing about workers."""

    id: str
    kind: str
    state: str
    status: str
    """The same as `state`."""
    over: bool
    """It will not run again by itself."""
    failed: bool
    """It failed for good: `failed` or `dead_letter`."""
    progress_percent: float
    progress_message: str | None
    last_error: str | None
    """The message of the last error, without its traceback."""
    output: Any
    omitted: bool
    """Input, output, auth, meta or headers are too large for lists and live updates, and null here: `GET /jobs/{id}` has them."""
    attempt: int
    max_attempts: int
    created_at: str
    scheduled_at: str | None
    started_at: str | None
    completed_at: str | None
    failed_at: str | None


class JobView(TrackerView):
    """A job at the time of the query."""

    queue: str
    priority: int
    capability: str | None
    crashes: int
    fence: int
    worker_id: str | None
    enqueued_at: str
    run_at: str | None
    expires_at: str | None
    """When it is canceled if it was not started."""
    finished_at: str | None
    error: str | None
    """The error of the last failed attempt, with its traceback."""
    error_type: str | None
    error_message: str | None
    input: Any
    timeout: float | None
    key: str | None
    parent_id: str | None
    chain_id: str | None
    """The chain that it is a link of: its own id if it starts the chain."""
    next_id: str | None
    """The next link of the chain."""
    enqueued_by: str | None
    auth: Any
    meta: Any
    system: Any
    limit_group: str | None
    job_type: str
    attempts: int
    worker_capability: str | None
    idempotency_key: str | None
    claimed_at: str | None
    last_heartbeat: str | None
    """When the worker that runs the job last renewed its lease, at the time of the query: live updates are not sent for it. Null:
    no worker runs it."""


LARGEST_SHOWN = 16 * 1024
"""Bytes of an input, output, auth, meta or system data, as PostgreSQL stores it, in lists and live updates: a page of 200 jobs
stays below a few MB."""


def tracker_view(job: JobStatus, *, omitted: bool = False) -> TrackerView:
    return _tracked(job, _failure_message(job.failure), omitted=omitted)


def _tracked(job: JobStatus, error_message: str | None, *, omitted: bool) -> TrackerView:
    state = job.state.value
    return {
        "id": str(job.id),
        "kind": job.kind,
        "state": state,
        "status": state,
        "over": job.state in OVER,
        "failed": job.state in FAILED,
        "progress_percent": _whole(job.progress_percent),
        "progress_message": job.progress_message,
        "last_error": job.error if job.state == State.CANCELED else error_message,
        "output": job.output,
        "omitted": omitted,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "created_at": job.enqueued_at.isoformat(),
        "scheduled_at": _time(job.run_at),
        "started_at": _time(job.started_at),
        "completed_at": _time(job.finished_at) if job.state == State.COMPLETED else None,
        "failed_at": _time(job.failed_at),
    }


def job_view(job: JobStatus, *, omitted: bool = False) -> JobView:
    """Written out: a list has hundreds of jobs, and `JobStatus.to_json` looks at the type of every value."""
    failure = job.failure
    message = _failure_message(failure)
    tracked = _tracked(job, message, omitted=omitted)
    return {
        **tracked,
        "queue": job.queue,
        "priority": job.priority,
        "capability": job.capability,
        "crashes": job.crashes,
        "fence": job.fence,
        "worker_id": _id(job.worker_id),
        "enqueued_at": tracked["created_at"],
        "run_at": tracked["scheduled_at"],
        "expires_at": _time(job.expires_at),
        "finished_at": _time(job.finished_at),
        "error": job.error,
        "error_type": None if failure is None else failure.type,
        "error_message": message,
        "input": job.input,
        "timeout": job.timeout,
        "key": job.key,
        "parent_id": _id(job.parent_id),
        "chain_id": _id(job.chain_id),
        "next_id": _id(job.next_id),
        "enqueued_by": job.enqueued_by,
        "auth": job.auth,
        "meta": job.meta,
        "system": job.system,
        "limit_group": job.limit_group,
        "job_type": job.kind,
        "attempts": job.attempt,
        "worker_capability": job.capability,
        "idempotency_key": job.key,
        "claimed_at": tracked["started_at"],
        "last_heartbeat": _time(job.heartbeat_at),
    }


def _failure_message(failure: Failure | None) -> str | None:
    return None if failure is None else failure.message


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _id(given: UUID | None) -> str | None:
    return None if given is None else str(given)


def _whole(percent: float) -> float:
    """40 rather than 40.0."""
    return int(percent) if percent == int(percent) else percent
