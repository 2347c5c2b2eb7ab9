"""What may prevent a job from running, as one statement returns it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime

from tenure.client.status import JobStatus
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
class LimitGroup:
    """A limit that applies to the job, and the job's group in it."""

    name: str
    line: str
    running: int
    most: int | None
    running_of_key: int
    most_of_key: int | None
    rate: int | None
    seconds: float | None
    wait: float | None
    """Seconds until the next start; None: one may start now."""
    rate_of_key: int | None
    seconds_of_key: float | None
    wait_of_key: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingChain:
    """A chain that a job waits for."""

    chain_id: str
    job_id: str | None
    """Its live link; None if it has ended, and that was not counted yet."""
    kind: str | None
    state: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """What a job waits for."""

    total: int
    missing: int | None
    on_failure: str
    failed: str | None
    """The first chain that did not complete."""
    chains: list[MissingChain]
    """The first of those that are missing."""
    open: bool = False
    """A group to which members are still being added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingStep:
    """What a workflow waits for."""

    name: str
    what: str
    state: str
    due_at: str | None
    event: str | None
    key: str | None


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
        limit_groups = [LimitGroup(**told) for told in json.loads(row.limit_groups or "[]")]
        job, blocked = JobStatus.from_row(row.job), _blocked(row.blocked)
        waits = [WaitingStep(**told) for told in json.loads(row.waits or "[]")]
        return ExplainFacts(**row._asdict() | {"job": job, "limit_groups": limit_groups, "blocked": blocked, "waits": waits})


def _blocked(text: str | None) -> Blocked | None:
    if text is None:
        return None
    told = json.loads(text)
    return Blocked(**told | {"chains": [MissingChain(**chain) for chain in told["chains"] or []]})
