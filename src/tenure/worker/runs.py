"""One run: a job in its slot, from the claim to its outcome."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any
from uuid import UUID

from tenure.model.kinds import Kind
from tenure.worker.signals import AbortReason, Signal


class Run:
    __slots__ = (
        "_signal",
        "attempt",
        "claim_id",
        "fence",
        "input",
        "job_id",
        "kind",
        "max_attempts",
        "queue",
        "settled",
        "started",
        "task",
        "thread",
        "worker_id",
    )

    def __init__(self, kind: Kind, row: tuple[Any, ...], claim_id: str, worker_id: str) -> None:
        """`row` is what the claim gave: id, kind, queue, priority, position, attempt, max_attempts, crashes, fence, input."""
        self.kind = kind
        self.job_id: str = row[0]
        self.queue: str = row[2]
        self.attempt: int = row[5]
        self.max_attempts: int = row[6]
        self.fence: int = row[8]
        self.input: str = row[9]
        self.claim_id = claim_id
        self.worker_id = worker_id
        self.started = time.monotonic()
        self.settled = False
        self.task: asyncio.Task[None] | None = None
        self.thread: Future[Any] | None = None
        self._signal: Signal | None = None

    @property
    def torn_down(self) -> bool:
        """Cancelled from outside, with the whole loop: not by us, and not by the handler itself."""
        return self.task is not None and self.task.cancelling() > 0

    @property
    def signal(self) -> Signal:
        if self._signal is None:
            self._signal = Signal()
        return self._signal

    @property
    def abort_reason(self) -> AbortReason | None:
        return None if self._signal is None else self._signal.reason

    @property
    def overdue(self) -> bool:
        return self.kind.timeout is not None and time.monotonic() - self.started > self.kind.timeout.total_seconds()

    def abort(self, reason: AbortReason) -> None:
        """Tells the handler, and cancels it where that is possible. Once: what it does then is its clean-up."""
        if self.signal.aborted:
            return
        self.signal.abort(reason)
        if self.task is not None:
            self.task.cancel()

    async def call(self, threads: Executor) -> Any:
        """Runs the handler where its kind wants to be run."""
        kind = self.kind
        arguments = kind.input.decode(self.input)
        if kind.signature.context is not None:
            arguments[kind.signature.context] = Context(self)
        if kind.run_in == "loop":
            return await kind.fn(**arguments)
        inside = contextvars.copy_context()
        self.thread = threads.submit(inside.run, _carried, partial(kind.fn, **arguments))
        return await asyncio.wrap_future(self.thread)


def _carried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error  # no future can carry it


class Context:
    """What a handler is told about its run. Ask for it with a parameter annotated `Context`."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def job_id(self) -> UUID:
        return UUID(self._run.job_id)

    @property
    def kind(self) -> str:
        return self._run.kind.name

    @property
    def queue(self) -> str:
        return self._run.queue

    @property
    def attempt(self) -> int:
        """1 for the first; crashes and snoozes do not count."""
        return self._run.attempt

    @property
    def max_attempts(self) -> int:
        return self._run.max_attempts

    @property
    def fence(self) -> int:
        """Grows with every claim of this job. Hand it to other stores, so that they can refuse an older run."""
        return self._run.fence

    @property
    def worker_id(self) -> UUID:
        return UUID(self._run.worker_id)

    @property
    def is_retry(self) -> bool:
        return self._run.attempt > 1

    @property
    def is_last_attempt(self) -> bool:
        return self._run.attempt >= self._run.max_attempts

    @property
    def signal(self) -> Signal:
        """Tells when this run is over before it is done, and why."""
        return self._run.signal
