"""What happens, as values: logs, metrics and tests subscribe, and the work does not know them.

Subscribers are called in the process in which something happens. One that fails is reported and harms nobody.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from tenure.model.errors import ConfigError
from tenure.model.states import State

log = logging.getLogger("tenure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The root: subscribe to it to hear everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnqueued(Event):
    """Handed in by this process, and durable (in a transaction of the caller's: as soon as that commits)."""

    job_id: UUID
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCanceled(Event):
    """Canceled from outside by this process (in a transaction of the caller's: as soon as that commits). What a handler decides
    is a `JobSettled`."""

    job_id: UUID
    kind: str
    reason: str | None
    by: str | None
    ran: bool
    """A run was under way, and is aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRetried(Event):
    """`retry()` by this process: the job runs as soon as it can."""

    job_id: UUID
    """The job that will run."""
    kind: str
    retry_of: UUID | None
    """The finished job of which that one was made; None: it is the same job."""
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReplayed(Event):
    """A dead letter is pending again, by this process."""

    job_id: UUID
    kind: str
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeleted(Event):
    """Removed by this process, with all that was kept of it."""

    job_id: UUID
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePaused(Event):
    queue: str
    reason: str | None
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueResumed(Event):
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Event):
    job_id: UUID
    kind: str
    queue: str
    attempt: int
    fence: int
    worker_id: UUID
    worker: str = ""
    """The worker's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettled(Event):
    """The run's outcome is written: the job stands in `state` now."""

    job_id: UUID
    kind: str
    queue: str
    attempt: int
    fence: int
    worker_id: UUID
    state: State
    what: str
    """completed, failed, canceled, timed_out, snoozed, handed_back, crashed."""
    ran: float
    """Seconds from the claim to the outcome."""
    error: str | None
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLost(Event):
    """The job is no longer this run's: whatever the run still wants to write is refused."""

    job_id: UUID
    kind: str
    fence: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAbandoned(Event):
    """The handler was told to end and did not: its slot is free again, and it runs on with no right to write anything."""

    job_id: UUID
    kind: str
    fence: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailedAfterCompletion(Event):
    """A session of the handler's own had completed the job, and then the handler failed. The job stays completed."""

    job_id: UUID
    kind: str
    fence: int
    what: str
    """failed, timed_out, snoozed, canceled, handed_back: what would have become of the job otherwise."""
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDue(Event):
    """The time of a scheduled or retried job has come: it is pending now."""

    job_id: UUID
    kind: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReaped(Event):
    """A job was taken from a worker that holds it no longer. It is pending again, or, after too many crashes, a dead letter."""

    job_id: UUID
    kind: str
    queue: str
    worker_id: UUID
    why: str
    """lease_lost: the worker's lease ran out. crashed: its process died. expired: the job's own lease ran out. stopped: its
    process was told to end and left the job behind."""
    quarantined: bool
    """It is a dead letter now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTicked(Event):
    """What became of a planned time of a schedule."""

    schedule: str
    planned_at: datetime
    outcome: str
    """enqueued; queued: it waits for an earlier job to end; skipped: an earlier job was live; missed: no leader was there."""
    times: int
    """Missed times in a row are one event: how many, from `planned_at` to `until`."""
    until: datetime | None
    job_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    worker_id: UUID
    queues: tuple[str, ...]
    worker: str = ""
    """Its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStopping(Event):
    """It claims no more jobs and lets those that run finish."""

    worker_id: UUID
    grace: float
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStopped(Event):
    worker_id: UUID
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDied(Event):
    """A process ended without having been asked to."""

    worker_id: UUID
    cause: str
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLeaseLost(Event):
    """A worker's lease ran out or was taken away, and all its jobs with it."""

    worker_id: UUID
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElected(Event):
    duty: str
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderDeposed(Event):
    duty: str
    term: int


E = TypeVar("E", bound=Event)


def check_event_types(types: Iterable[object]) -> None:
    for type_ in types:
        if not (isinstance(type_, type) and issubclass(type_, Event)):
            name = getattr(type_, "__name__", "")
            known = isinstance(globals().get(name), type) and issubclass(globals()[name], Event)
            hint = f"the event of that name is tenure.events.{name}" if known else "subscribe to classes such as JobSettled"
            raise ConfigError(f"{type_!r} is not an event: {hint}")


class Events:
    """Who wants to know what."""

    def __init__(self) -> None:
        self._subscribers: list[tuple[tuple[type[Event], ...], Callable[[Any], object]]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    def subscribe(self, types: tuple[type[Event], ...], subscriber: Callable[[Any], object]) -> None:
        check_event_types(types)
        self._subscribers.append((types or (Event,), subscriber))

    def wants(self, type_: type[Event]) -> bool:
        """Whether anybody listens: if not, the event need not even be made."""
        return bool(self._subscribers) and any(issubclass(type_, types) for types, _ in self._subscribers)

    def wanted(self) -> list[str]:
        """The names of all events that have a subscriber."""
        return [type_.__name__ for type_ in Event.__subclasses__() if self.wants(type_)]

    def emit(self, event: Event) -> None:
        for types, subscriber in self._subscribers:
            if isinstance(event, types):
                self._call(subscriber, event)

    def _call(self, subscriber: Callable[[Any], object], event: Event) -> None:
        try:
            given = subscriber(event)
            if inspect.isawaitable(given):
                self._follow(_awaited(given, event))
        except Exception:
            log.exception("a subscriber of %s failed", type(event).__name__)

    def _follow(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            asyncio.run(work)  # code without an event loop waits for it
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _awaited(given: Any, event: Event) -> None:
    try:
        await given
    except Exception:
        log.exception("a subscriber of %s failed", type(event).__name__)
