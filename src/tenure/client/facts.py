"""What may prevent a job from running, as one statement returns it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tenure.client.status import JobStatus
from tenure.store.obstacles import Blocked, LimitGroup, WaitingStep
from tenure.store.reports import ExplainRow


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    fact: str
    call: str = ""
    """The Python call that resolves it. The command line names commands instead."""

    @property
    def text(self) -> str:
        return self.fact + self.call


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainFacts:
    job: JobStatus
    now: datetime
    lease_expires_at: datetime | None = None
    host: str | None = None
    """The host of the worker that holds it. None although there is a worker id: that worker is unknown."""
    pid: int | None = None
    worker_name: str | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    stager: bool = True
    """A live process holds the stager duty, which makes due jobs pending."""
    workers: int = 1
    """Live workers; of those, workers of the queue; of those, workers that know the kind; of those, with the capability."""
    for_queue: int = 1
    for_kind: int = 1
    for_capability: int = 1
    draining: int = 0
    """Of the workers of `for_capability`: how many claim no more jobs."""
    slots: int = 1
    """How many jobs the workers of `for_capability` can run at a time, and how many they hold."""
    held: int = 0
    ahead: int = 0
    """Jobs before it that the same workers could run."""
    limit_groups: list[LimitGroup] = field(default_factory=list)
    resolver: bool = True
    """A live process holds the resolver duty, which unblocks jobs."""
    blocked: Blocked | None = None
    waits: list[WaitingStep] = field(default_factory=list)

    @staticmethod
    def from_row(row: ExplainRow) -> ExplainFacts:
        return ExplainFacts(**row._asdict() | {"job": JobStatus.from_row(row.job)})
