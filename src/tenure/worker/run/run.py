"""One run: a job in its slot, from the claim to its outcome."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tenure.model.claimed_job import ClaimedJob
from tenure.model.headers import Headers
from tenure.model.kinds import Kind
from tenure.model.payloads import plain_json
from tenure.model.system_data import SystemData
from tenure.worker.run.abort import AbortReason, Signal

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tenure.store.blockers import BlockerRow
    from tenure.worker.run.open_transaction import OpenTransaction
    from tenure.worker.run.settlement import Settlement
    from tenure.worker.run.updates import RunUpdates


_changing = threading.Lock()
"""Held for each change of a run's state: the loop may give up a run while its handler's thread begins to commit."""


class RunState(Enum):
    ACTIVE = auto()
    """Claimed; its handler runs or will be called."""
    COMMITTING = auto()
    """Its own transaction is being committed: too late to abort, and nothing else may touch the job's row."""
    SETTLED = auto()
    """Its outcome is decided, and is written by the settler if it is ours to write."""
    SETTLED_ITSELF = auto()
    """Its own transaction has settled the job."""


_ACTIVE, _SETTLED = RunState.ACTIVE, RunState.SETTLED
"""A member that is looked up in its class costs ten times as much, and each job needs these."""


class Run:
    __slots__ = (
        "_signal",
        "_state",
        "_stored_headers",
        "_system",
        "aborted_at",
        "attempt",
        "blockers",
        "claim_id",
        "deadline",
        "fence",
        "heartbeat_at",
        "heartbeat_sent_at",
        "in_doubt",
        "job",
        "job_id",
        "kind",
        "leased_until",
        "loss_reported",
        "opening",
        "owes_output",
        "queue",
        "settled_as",
        "started",
        "stored_steps",
        "task",
        "thread",
        "transaction",
        "updates",
        "was_started",
        "worker_id",
    )

    def __init__(self, kind: Kind, job: ClaimedJob, claim_id: str, worker_id: str) -> None:
        self.kind = kind
        self.job = job
        self.job_id = job.id
        self.queue = job.queue
        self.attempt = job.attempt
        self.fence = job.fence
        self.claim_id = claim_id
        self.worker_id = worker_id
        self._state = _ACTIVE
        self.stored_steps: tuple[str, ...] = ()
        """Of a workflow: the steps whose storage was confirmed since a statement has checked that the ones before are there."""
        self.started = time.monotonic()
        self.deadline: float | None = None
        self.leased_until: float | None = None if kind.lease is None else self.started + kind.lease.total_seconds()
        """When the job's own lease ends, by this process's clock, as far as it is known to be written."""
        self.heartbeat_at = self.heartbeat_sent_at = 0.0
        self.aborted_at = 0.0
        self.was_started = False
        """Its handler was called. A claimed job may also be requeued before that."""
        self.loss_reported = False
        """It was reported that the job is no longer this run's."""
        self.task: asyncio.Task[None] | None = None
        self.thread: Future[Any] | None = None
        self.updates: RunUpdates | None = None
        self.transaction: OpenTransaction | None = None
        self.blockers: list[BlockerRow] = []
        """The chains that the job has waited for, read before its handler is called."""
        self.opening: asyncio.Lock | None = None
        self.settled_as = "completed"
        """How its own transaction has settled the job, if it did."""
        self.owes_output = False
        """Its own transaction has completed the job, or is about to, and the output is added when the handler has returned."""
        self.in_doubt: Settlement | None = None
        """What a transaction of its own was to settle, when its COMMIT was not answered."""
        self._signal: Signal | None = None
        self._system: SystemData | None = None
        self._stored_headers: Headers | None = None

    # State

    @property
    def settled(self) -> bool:
        """Its outcome is decided."""
        return self._state is RunState.SETTLED or self._state is RunState.SETTLED_ITSELF

    @property
    def settled_itself(self) -> bool:
        return self._state is RunState.SETTLED_ITSELF

    @property
    def committing(self) -> bool:
        return self._state is RunState.COMMITTING

    @property
    def reports(self) -> bool:
        """Its progress, log lines and heartbeats are written."""
        return self._state is RunState.ACTIVE

    def settle(self) -> bool:
        """Decides the outcome. False when that was done before."""
        with _changing:
            unsettled = self._state is _ACTIVE or self._state is RunState.COMMITTING
            if unsettled:
                self._state = _SETTLED
            return unsettled

    def settle_itself(self, what: str) -> None:
        """Its own transaction was committed, with the outcome. Valid even if the worker gave the run up meanwhile."""
        with _changing:
            self._state = RunState.SETTLED_ITSELF
            self.settled_as = what

    def begin_commit(self) -> None:
        with _changing:
            if not self.settled:
                self._state = RunState.COMMITTING

    def end_commit(self) -> None:
        """Also after a failure; `settle_itself()` was called if the commit settled the job."""
        with _changing:
            if self._state is RunState.COMMITTING:
                self._state = RunState.ACTIVE

    # The job

    @property
    def kind_name(self) -> str:
        return self.kind.name

    @property
    def log_fields(self) -> dict[str, Any]:
        """For `extra=` of log records about this run."""
        return {"job_id": self.job_id, "kind": self.kind.name, "attempt": self.attempt, "fence": self.fence}

    @property
    def job_uuid(self) -> UUID:
        return UUID(self.job_id)

    @property
    def auth(self) -> str | None:
        return self.job.auth

    @property
    def system(self) -> SystemData:
        """What Tenure itself has noted about the job, decoded once."""
        if self._system is None:
            self._system = SystemData.parse(self.job.system)
        return self._system

    @property
    def stored_headers(self) -> Headers:
        """Those of the job, without what was added to this run."""
        return self.system.headers if self._stored_headers is None else self._stored_headers

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """For this run only: the stored job does not change."""
        self._stored_headers = self.stored_headers
        system = {} if self.job.system is None else json.loads(self.job.system)
        system = {**(system if isinstance(system, dict) else {}), "headers": {**self.system.headers, **headers}}
        self.job = self.job._replace(system=plain_json(system, what=f"the headers of job {self.kind.name!r}"))
        self._system = None

    @property
    def time_limit(self) -> float | None:
        """Seconds: the call's own, or its kind's."""
        if self.job.timeout is not None:
            return self.job.timeout
        return None if self.kind.timeout is None else self.kind.timeout.total_seconds()

    # Ending it early

    @property
    def signal(self) -> Signal:
        if self._signal is None:
            self._signal = Signal()
        return self._signal

    @property
    def abort_reason(self) -> AbortReason | None:
        return None if self._signal is None else self._signal.reason

    def heartbeat_written(self) -> None:
        if self.heartbeat_sent_at and self.kind.lease is not None:
            self.leased_until = self.heartbeat_sent_at + self.kind.lease.total_seconds()
            self.heartbeat_sent_at = 0.0

    def is_cut_off(self, now: float) -> bool:
        """Its own lease has run out although the handler sent heartbeats: they could not be written."""
        if self.leased_until is None or self.kind.lease is None or now <= self.leased_until:
            return False
        return self.heartbeat_at > self.leased_until - self.kind.lease.total_seconds()

    def abort(self, reason: AbortReason) -> None:
        """Notifies the handler, and cancels it where that is possible. Once: what it does then is its clean-up."""
        if self.committing or self.signal.aborted:
            return
        self.aborted_at = time.monotonic()
        self.signal.abort(reason)
        if self.task is not None:
            self.task.cancel()
