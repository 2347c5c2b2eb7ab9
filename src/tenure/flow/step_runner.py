"""Runs the steps of a workflow: each once, as far as its result could be stored."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

from tenure.flow.activity import Activity
from tenure.flow.branches import join_tasks
from tenure.flow.journal import Journal
from tenure.flow.step_functions import StepCall, StepFunction
from tenure.flow.step_transactions import StepTransaction
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import LeaseLost, StepFailed, TransactionError
from tenure.model.events import StepEnded, WaitBegan, WaitEnded
from tenure.model.outcomes import Outcome
from tenure.model.payloads import Json, describe_exception
from tenure.model.retries import Retry
from tenure.model.suspensions import OpenStep
from tenure.store.query import Query
from tenure.store.steps import StepResult, StepRow
from tenure.worker.run.run import Run
from tenure.worker.run.stored_steps import confirm_stored

if TYPE_CHECKING:
    from tenure.worker.run.services import LoopServices

T = TypeVar("T")

SHORT = 2.0
"""Seconds that a step waits for its next try in its slot. For longer, the workflow is suspended."""


Perform = Callable[[int], Awaitable[Any]]
"""Tries a step, and stores its result. Gets the number of the try."""


class StepOptions(NamedTuple):
    retry: Retry | None = None
    timeout: float | None = None
    in_process: bool = False


def step_options(retry: Retry | int | None, timeout: Duration | None, *, in_process: bool = False) -> StepOptions:
    return StepOptions(
        None if retry is None else Retry.from_value(retry),
        None if timeout is None else to_seconds(timeout, what="timeout"),
        in_process,
    )


@dataclass(frozen=True, slots=True)
class TryLater:
    """The step failed, and is to be tried again after a longer time."""

    attempts: int
    delay: float
    error: str


@dataclass(frozen=True, slots=True)
class UnhandledFailure:
    """A step failed, and it is not known yet whether the workflow continues."""

    key: str
    what: str
    error: str
    attempts: int


class StepRunner:
    def __init__(self, run: Run, journal: Journal, activity: Activity, services: LoopServices) -> None:
        self._run = run
        self.journal = journal
        self.activity = activity
        self.stopping = False
        """Nothing new is to happen: the workflow is rolled back."""
        self._services = services
        self._failures: list[UnhandledFailure] = []

    async def run(self, key: str, function: StepFunction, call: StepCall, options: StepOptions, what: str = "step") -> Any:
        async def perform(attempts: int) -> Any:
            began = time.monotonic()
            async with asyncio.timeout(options.timeout):
                if options.in_process:
                    value = await self._services.call_in_process(function.fn, call.args, call.kwargs)
                else:
                    value = await function.run(call, self._services.threads)
            text = function.encode(value)
            await self.journal.record(key, what, text, attempts=attempts, ran=time.monotonic() - began)
            return function.same(value, text)

        return await self._once(key, what, function, options.retry, perform)

    async def run_in_transaction(
        self, key: str, function: StepFunction, call: StepCall, options: StepOptions, session: object | None
    ) -> Any:
        async def perform(attempts: int) -> Any:
            number, stored = self.journal.number_of(key), self._run.stored_steps

            def result(output: Json) -> StepResult:
                return StepResult(self._run.job_id, self._run.claim_id, key, number, output, attempts, stored)

            async with asyncio.timeout(options.timeout):
                value = await StepTransaction(self._run, self._services, session, result).call(function, call.args)
            confirm_stored(self._run, stored, key)
            return value

        return await self._once(key, "transaction", function, options.retry, perform)

    async def _once(self, key: str, what: str, function: StepFunction, retry: Retry | None, perform: Perform) -> Any:
        """The recorded result, or that of `perform`, which records it."""
        row = await self.recorded(key, what)
        if row is not None and row.state == "done":
            return function.decode(row.output)
        if row is not None and row.state == "failed":
            raise StepFailed(key, row.error or "")
        if row is not None and row.due_in is not None and row.due_in > 0:
            await self.activity.wait(_retry_of(row))
        with self.activity.working():
            await self.begin(key)
            await self.journal.store_decisions(key)
            try:
                tried = await self._try(key, what, perform, retry, 0 if row is None else row.attempts)
            except StepFailed:
                if what != "transaction" or (row := await self._committed_nevertheless(key)) is None:
                    raise
                return function.decode(row.output)
        if not isinstance(tried, TryLater):
            return tried[0]
        number = self.journal.number_of(key)
        return await self.activity.wait(
            OpenStep(
                number=number, name=key, what=what, state="retry", error=tried.error, attempts=tried.attempts, seconds=tried.delay
            )
        )

    async def recorded(self, key: str, what: str) -> StepRow | None:
        join_tasks()
        self.activity.check()
        row = self.journal.find(key)
        if row is not None and row.what != what:
            await self.activity.hold(
                f"the run has recorded {key!r} as a {row.what}, but the code asks for a {what} of this name: {WAY_OUT}"
            )
        return row

    async def begin(self, key: str) -> None:
        """Something happens now that is not recorded."""
        if self.stopping:
            await self.journal.caught_up()  # other tasks may not have reached yet what they have registered
            await self.activity.stop()
        if not await self.journal.caught_up():
            missing = ", ".join(map(repr, self.journal.unread()[:5]))
            await self.activity.hold(f"the code asks for {key!r}, but the run has recorded {missing} instead: {WAY_OUT}")
        self.add_failures()

    def begin_rollback(self) -> None:
        """What follows is not the code of the workflow."""
        self.activity = Activity()
        self.journal.skip_unread()

    async def read(self, query: Query[T]) -> list[T]:
        return await self._services.steps.read(query)

    async def returned(self) -> None:
        """The code of the workflow has returned."""
        if not self.stopping and not await self.journal.caught_up():
            missing = ", ".join(map(repr, self.journal.unread()[:5]))
            await self.activity.hold(f"the code returned without {missing}, which the run has recorded: {WAY_OUT}")

    async def _try(self, key: str, what: str, perform: Perform, retry: Retry | None, attempts: int) -> tuple[Any] | TryLater:
        """The result in a tuple, stored."""
        while True:
            attempts += 1
            began = time.monotonic()
            try:
                result = (await perform(attempts),)
                self._report(key, what, "done", attempts=attempts, began=began)
            except (Outcome, LeaseLost, TransactionError):
                raise
            except Exception as error:
                delay = _delay(retry, attempts, error)
                state = "failed" if delay is None else "retry"
                self._report(key, what, state, attempts=attempts, began=began, error=error)
                if delay is None:
                    raise self._failed(key, what, error, attempts) from error
                if delay > SHORT:
                    return TryLater(attempts, delay, describe_exception(error))
            else:
                return result
            await asyncio.sleep(delay)

    def _report(self, key: str, what: str, state: str, *, attempts: int, began: float, error: Exception | None = None) -> None:
        events, run = self._services.events, self._run
        if events.wants(StepEnded):
            events.emit(
                StepEnded(
                    job_id=run.job_uuid, kind=run.kind_name, step=key, what=what, state=state, attempts=attempts,
                    ran=time.monotonic() - began, error=None if error is None else str(error),
                )
            )  # fmt: skip

    def wait_began(
        self,
        key: str,
        what: str,
        *,
        event: str | None = None,
        child: str | None = None,
        seconds: float | None = None,
        until: str | None = None,
    ) -> None:
        """Called when the code asks for the first time."""
        events, run = self._services.events, self._run
        if events.wants(WaitBegan):
            events.emit(
                WaitBegan(
                    job_id=run.job_uuid, kind=run.kind_name, step=key, what=what, event=event,
                    child=None if child is None else UUID(child), seconds=seconds,
                    until=None if until is None else datetime.fromisoformat(until),
                )
            )  # fmt: skip

    def wait_ended(self, key: str, what: str, *, failed: bool = False, error: str | None = None) -> None:
        """Called when the code continues, by the first run that does so."""
        events, run = self._services.events, self._run
        if events.wants(WaitEnded) and not self.stopping:
            state = "failed" if failed else "done"
            events.emit(WaitEnded(job_id=run.job_uuid, kind=run.kind_name, step=key, what=what, state=state, error=error))

    def _failed(self, key: str, what: str, error: Exception, attempts: int) -> StepFailed:
        text = describe_exception(error)
        self._failures.append(UnhandledFailure(key, what, text, attempts))
        return StepFailed(key, text)

    async def _committed_nevertheless(self, key: str) -> StepRow | None:
        """A step in a transaction has failed for good, but its transaction may still be committed: by a thread that continues
        after its time limit, or by a COMMIT that was not answered. The failure is stored now, and from then on the transaction
        is rolled back; unless it was committed before. Then it has not failed: its row is returned."""
        self.add_failures(key)
        await self.journal.flush()
        rows = await self._services.steps.load(self._run)
        return next((row for row in rows if row.name == key and row.state == "done"), None)

    def add_failures(self, only: str | None = None) -> None:
        """A failure is recorded when the workflow continues after it. If it ends the run instead, the next attempt tries the step
        again (see `Journal.forget_failures`). `only`: that of this step."""
        failures = [failure for failure in self._failures if only in (None, failure.key)]
        self._failures = [failure for failure in self._failures if failure not in failures]
        for failure in failures:
            self.journal.add(
                OpenStep(
                    number=self.journal.number_of(failure.key), name=failure.key, what=failure.what, state="failed",
                    error=failure.error, attempts=failure.attempts,
                )
            )  # fmt: skip


WAY_OUT = (
    "bring back the code that it began with, or guard the change with ctx.patched(), then `tenure workflows resume`; or fork it"
)


def _retry_of(row: StepRow) -> OpenStep:
    return OpenStep(
        number=row.number, name=row.name, what=row.what, state="retry", error=row.error, attempts=row.attempts, until=row.due_at
    )


def _delay(retry: Retry | None, attempts: int, error: Exception) -> float | None:
    """Seconds until the next try; None: there is none."""
    if retry is None or attempts >= retry.max_attempts or not retry.wants(error):
        return None
    return retry.delay(attempts, random.random()).total_seconds()  # noqa: S311
