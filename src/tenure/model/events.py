"""Events as values, for logs, metrics and tests to subscribe to. Subscribers are called by `model/event_bus.py`.

A process that only enqueues, without a subscriber, does not import this module: thirty dataclasses take a fifth of the time that
`from tenure import Tenure` would take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tenure.model.errors import ConfigError
from tenure.model.states import State


@dataclass(frozen=True, kw_only=True)
class Event:
    """The root: subscribe to it to receive all events."""


@dataclass(frozen=True, kw_only=True)
class JobEnqueued(Event):
    """Enqueued by this process, and durable (in the caller's transaction: as soon as that commits)."""

    job_id: UUID
    kind: str


@dataclass(frozen=True, kw_only=True)
class JobCanceled(Event):
    """Canceled by this process (in the caller's transaction: as soon as that commits), or by the leader, because the job expired
    or a job that it waits for did not complete. A handler that returns `Cancel` causes a `JobSettled` instead."""

    job_id: UUID
    kind: str
    reason: str | None
    by: str | None
    ran: bool
    """The job was running, and is aborted."""


@dataclass(frozen=True, kw_only=True)
class JobRetried(Event):
    """`retry()` by this process: the job runs as soon as it can."""

    job_id: UUID
    """The job that will run."""
    kind: str
    retry_of: UUID | None
    """The finished job that was copied; None: it is the same job."""
    by: str | None


@dataclass(frozen=True, kw_only=True)
class JobReplayed(Event):
    """A dead letter was made pending again by this process."""

    job_id: UUID
    kind: str
    by: str | None


@dataclass(frozen=True, kw_only=True)
class JobDeleted(Event):
    """Deleted by this process, with everything stored about it."""

    job_id: UUID
    kind: str


@dataclass(frozen=True, kw_only=True)
class QueuePaused(Event):
    queue: str
    reason: str | None
    by: str | None


@dataclass(frozen=True, kw_only=True)
class QueueResumed(Event):
    queue: str


@dataclass(frozen=True, kw_only=True)
class JobStarted(Event):
    job_id: UUID
    kind: str
    queue: str
    attempt: int
    fence: int
    worker_id: UUID
    worker: str = ""
    """The worker's name."""


@dataclass(frozen=True, kw_only=True)
class JobSettled(Event):
    """The run's outcome is written: the job is in `state` now."""

    job_id: UUID
    kind: str
    queue: str
    attempt: int
    fence: int
    worker_id: UUID
    state: State
    what: str
    """completed, continued, failed, canceled, timed_out, snoozed, suspended, held, requeued, crashed."""
    ran: float
    """Seconds from the claim to the outcome."""
    error: str | None
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class StepEnded(Event):
    """A step of a workflow has run in this process, and its result is stored; or it has failed."""

    job_id: UUID
    kind: str
    step: str
    what: str
    """step, transaction, undo."""
    state: str
    """done, failed; retry: it failed and is tried again later."""
    attempts: int
    ran: float
    """Seconds of the last try."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class WaitBegan(Event):
    """The code of a workflow has asked for something to wait for, for the first time. It may be there already: then `WaitEnded`
    follows at once. A run that dies before the wait is stored is repeated, and so is this event."""

    job_id: UUID
    kind: str
    step: str
    what: str
    """sleep; wait: for an event; event: for the next signal, or the next event of a stream; call: for a child."""
    event: str | None = None
    """The name of the event or signal."""
    child: UUID | None = None
    seconds: float | None = None
    """How long it waits at most; None: until a given time, or without a limit."""
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class WaitEnded(Event):
    """What a workflow waited for has happened, or did not happen in time, and its code continues. A run that dies before this is
    stored is repeated, and so is this event."""

    job_id: UUID
    kind: str
    step: str
    what: str
    """As in `WaitBegan`."""
    state: str
    """done; failed: no event came in time, or the child did not complete."""
    error: str | None


@dataclass(frozen=True, kw_only=True)
class WorkflowSuspended(Event):
    """A workflow waits, and takes no slot."""

    job_id: UUID
    kind: str
    steps: tuple[str, ...]
    """What it waits for."""
    held: str | None
    """Why a person must decide before it can continue."""


@dataclass(frozen=True, kw_only=True)
class RunLost(Event):
    """The run no longer holds its job: all further writes of the run are refused."""

    job_id: UUID
    kind: str
    fence: int
    reason: str
    queue: str = ""


@dataclass(frozen=True, kw_only=True)
class RunAbandoned(Event):
    """The handler was aborted and did not end: its slot is free again, and what it still writes is refused."""

    job_id: UUID
    kind: str
    fence: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class RunFailedAfterCompletion(Event):
    """The handler completed the job in its own session, and then failed. The job stays completed."""

    job_id: UUID
    kind: str
    fence: int
    what: str
    """failed, timed_out, snoozed, canceled, requeued: the outcome that the job would have had."""
    error: str


@dataclass(frozen=True, kw_only=True)
class JobDue(Event):
    """A scheduled or retried job became due: it is pending now."""

    job_id: UUID
    kind: str
    queue: str


@dataclass(frozen=True, kw_only=True)
class JobUnblocked(Event):
    """The chains that the job waited for have ended. It is pending now, or scheduled if its time has not come."""

    job_id: UUID
    kind: str
    queue: str
    state: State


@dataclass(frozen=True, kw_only=True)
class WorkflowWoken(Event):
    """What a workflow waited for has happened: it is pending now. One whose sleep has ended is a `JobDue`."""

    job_id: UUID
    kind: str
    queue: str


@dataclass(frozen=True, kw_only=True)
class JobCompleted(Event):
    """Completed without a run: by `app.chains.complete()` of this process (in the caller's transaction: as soon as that commits),
    or a group whose members have all completed. A run causes a `JobSettled` instead."""

    job_id: UUID
    kind: str
    by: str | None


@dataclass(frozen=True, kw_only=True)
class JobFailed(Event):
    """Failed without a run: a group with a member that did not complete, or a job that waits for its own chain. A run causes a
    `JobSettled` instead."""

    job_id: UUID
    kind: str
    queue: str
    error: str | None


@dataclass(frozen=True, kw_only=True)
class JobReaped(Event):
    """A job was taken from a worker that no longer holds it. It is pending again, or, after too many crashes, a dead letter."""

    job_id: UUID
    kind: str
    queue: str
    worker_id: UUID
    why: str
    """lease_lost: the worker's lease expired. crashed: its process died. expired: the job's own lease expired. stopped: its
    process was asked to end and left the job behind."""
    quarantined: bool
    """It is a dead letter now."""
    worker: str = ""
    """The worker's name."""
    host: str = ""
    """The machine on which it ran."""


@dataclass(frozen=True, kw_only=True)
class ScheduleTicked(Event):
    """The outcome of a planned time of a schedule."""

    schedule: str
    planned_at: datetime
    outcome: str
    """enqueued; queued: it waits for an earlier job to end; skipped: an earlier job was live; missed: there was no leader."""
    times: int
    """Missed times in a row are one event: how many, from `planned_at` to `until`."""
    until: datetime | None
    job_id: UUID | None


@dataclass(frozen=True, kw_only=True)
class WorkerStarted(Event):
    worker_id: UUID
    queues: tuple[str, ...]
    worker: str = ""
    """Its name."""


@dataclass(frozen=True, kw_only=True)
class WorkerStopping(Event):
    """It claims no more jobs and waits for its running jobs."""

    worker_id: UUID
    grace: float
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkerStopped(Event):
    worker_id: UUID
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkerDied(Event):
    """A process ended without having been asked to."""

    worker_id: UUID
    cause: str
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkerLeaseLost(Event):
    """A worker's lease expired or was taken, and all its jobs with it."""

    worker_id: UUID
    worker: str = ""


@dataclass(frozen=True, kw_only=True)
class LeaderElected(Event):
    duty: str
    term: int


@dataclass(frozen=True, kw_only=True)
class LeaderDeposed(Event):
    duty: str
    term: int


def check_event_types(types: Iterable[object]) -> None:
    for type_ in types:
        if not (isinstance(type_, type) and issubclass(type_, Event)):
            name = getattr(type_, "__name__", "")
            known = isinstance(globals().get(name), type) and issubclass(globals()[name], Event)
            hint = f"the event of that name is tenure.events.{name}" if known else "subscribe to classes such as JobSettled"
            raise ConfigError(f"{type_!r} is not an event: {hint}")
