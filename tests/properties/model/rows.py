"""What the model keeps: plain values, named as the columns are."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from tenure.model.states import HELD, State

MAX_CRASHES = 3
"""Promised, not asked of the store: the third crash sets a job aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One job as it is enqueued. What is None is left out."""

    id: str
    kind: str
    queue: str
    input: str = "{}"
    priority: int | None = None
    capability: str | None = None
    max_attempts: int | None = None
    delay: float | None = None
    key: str | None = None
    key_for: str | None = None
    parent: str | None = None
    claim: str | None = None

    def to_json(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in given.items() if value is not None} | {"input": json.loads(self.input)}


@dataclass(slots=True, kw_only=True)
class Job:
    id: str
    kind: str
    queue: str
    state: str
    enqueued_at: float
    input: str
    priority: int
    capability: str | None
    max_attempts: int
    key: str | None = None
    parent_id: str | None = None
    position: int = 0
    attempt: int = 0
    crashes: int = 0
    fence: int = 0
    claim_id: str | None = None
    worker_id: str | None = None
    run_at: float | None = None
    started_at: float | None = None
    earlier_start: float | None = None
    """Of the run before the current one."""
    lease_until: float | None = None
    finished_at: float | None = None
    error: str | None = None
    output: str | None = None

    @property
    def held(self) -> bool:
        return self.state in HELD

    @property
    def waits(self) -> bool:
        """For its time: the stager will promote it."""
        return self.state in (State.SCHEDULED, State.RETRY)


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    worker_id: str
    at: float
    job_ids: tuple[str, ...]


@dataclass(slots=True)
class Key:
    kind: str
    key: str
    job_id: str
    scope: str
    taken_at: float
    expires_at: float | None
    digest: str


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a worker serves."""

    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    capabilities: tuple[str, ...] = ()
    which: str = "all"
    leases: tuple[tuple[str, float], ...] = ()

    def serves(self, job: Job) -> bool:
        if job.queue not in self.queues or job.kind not in self.kinds:
            return False
        if job.capability is not None and job.capability not in self.capabilities:
            return False
        return self.which == "all" or (job.crashes >= 2) == (self.which == "suspects")

    def lease(self, kind: str) -> float | None:
        return dict(self.leases).get(kind)


@dataclass(slots=True)
class Worker:
    id: str
    supervisor_id: str
    profile: Profile
    heartbeat_at: float
    expires_at: float
    died_at: float | None = None
    died_how: str | None = None


@dataclass(slots=True)
class Lease:
    name: str
    holder: str
    term: int
    acquired_at: float
    heartbeat_at: float
    expires_at: float


@dataclass(slots=True)
class Queue:
    name: str
    returns: int = 0
    paused_at: float | None = None


@dataclass(slots=True)
class Progress:
    job_id: str
    fence: int
    percent: float


@dataclass(frozen=True, slots=True)
class Run:
    """A job held by a worker under this claim. It is kept after its end, because stale runs send statements, too."""

    job_id: str
    claim_id: str
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended, for finish (the first three) or move (the others)."""

    run: Run
    state: str
    error: str | None = None
    output: str | None = None
    what: str | None = None
    delay: float | None = None
    refund: int | None = None
    crash: int | None = None

    def to_json(self) -> dict[str, Any]:
        names = ("state", "error", "what", "delay", "refund", "crash")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {"id": self.run.job_id, "claim_id": self.run.claim_id, **given}

    def to_finish(self) -> list[Any]:
        """As an entry of `FinishedRuns.outcomes`."""
        return [self.run.claim_id, None if self.output is None else json.loads(self.output), self.state, self.error]


@dataclass(slots=True)
class Books:
    """All that stands written."""

    now: float
    position: int = 0
    live: dict[str, Job] = field(default_factory=dict)
    finished: dict[str, Job] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    keys: dict[tuple[str, str], Key] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    incidents: list[tuple[Any, ...]] = field(default_factory=list)
    """(job, what, attempt, fence, worker)"""
    settled: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """How many jobs of (queue, kind) ended up as what."""
