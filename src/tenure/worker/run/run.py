"""One run: a job in its slot, from the claim to its outcome."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tenure.model.kinds import Kind
from tenure.worker.run.abort import AbortReason, Signal

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tenure.worker.run.open_transaction import OpenTransaction
    from tenure.worker.run.settlement import Settlement
    from tenure.worker.run.updates import RunUpdates


class Run:
    __slots__ = (
        "_signal",
        "aborted_at",
        "attempt",
        "auth",
        "claim_id",
        "closing",
        "crashes",
        "deadline",
        "fence",
        "gate",
        "heartbeat_at",
        "heartbeat_sent_at",
        "in_doubt",
        "input",
        "job_id",
        "kind",
        "leased_until",
        "lost",
        "max_attempts",
        "meta",
        "opening",
        "owes_output",
        "queue",
        "settled",
        "settled_itself",
        "started",
        "task",
        "thread",
        "timeout",
        "transaction",
        "updates",
        "was_started",
        "worker_id",
    )

    def __init__(self, kind: Kind, row: tuple[Any, ...], claim_id: str, worker_id: str) -> None:
        """`row` is what the claim gave: id, kind, queue, priority, position, attempt, max_attempts, crashes, fence, input,
        timeout, auth, meta, and the gate where there is one."""
        self.kind = kind
        self.job_id: str = row[0]
        self.queue: str = row[2]
        self.attempt: int = row[5]
        self.max_attempts: int = row[6]
        self.crashes: int = row[7]
        self.fence: int = row[8]
        self.input: str = row[9]
        self.timeout: float | None = row[10]
        self.auth: str | None = row[11]
        self.meta: str | None = row[12]
        self.gate: str | None = row[13] if len(row) > 13 else None
        self.claim_id = claim_id
        self.worker_id = worker_id
        self.started = time.monotonic()
        self.deadline: float | None = None
        self.leased_until: float | None = None if kind.lease is None else self.started + kind.lease.total_seconds()
        """When the job's own lease ends, by this process's clock, as far as it is known to be written."""
        self.heartbeat_at = self.heartbeat_sent_at = 0.0
        self.aborted_at = 0.0
        self.was_started = False
        """Its handler was called. A claim may also be handed back before that."""
        self.lost = False
        """It was reported that the job is no longer this run's."""
        self.settled = False
        """Its outcome is decided."""
        self.settled_itself = False
        """Its own transaction has settled the job."""
        self.closing = False
        """Its own transaction is being committed: too late to abort, and nothing else may touch the job's row."""
        self.task: asyncio.Task[None] | None = None
        self.thread: Future[Any] | None = None
        self.updates: RunUpdates | None = None
        self.transaction: OpenTransaction | None = None
        self.opening: asyncio.Lock | None = None
        self.owes_output = False
        """Its own transaction has completed the job, or is about to, and the output is added when the handler has returned."""
        self.in_doubt: Settlement | None = None
        """What a transaction of its own was to settle, when its COMMIT was not answered."""
        self._signal: Signal | None = None

    @property
    def kind_name(self) -> str:
        return self.kind.name

    @property
    def job_uuid(self) -> UUID:
        return UUID(self.job_id)

    @property
    def time_limit(self) -> float | None:
        """Seconds: the call's own, or its kind's."""
        if self.timeout is not None:
            return self.timeout
        return None if self.kind.timeout is None else self.kind.timeout.total_seconds()

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
        """Tells the handler, and cancels it where that is possible. Once: what it does then is its clean-up."""
        if self.closing or self.signal.aborted:
            return
        self.aborted_at = time.monotonic()
        self.signal.abort(reason)
        if self.task is not None:
            self.task.cancel()
