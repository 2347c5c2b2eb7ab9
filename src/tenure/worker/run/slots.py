"""The slots of a worker: starts runs, collects their outcomes, and ends them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tenure.model.errors import StoreUnavailable
from tenure.model.event_bus import Events
from tenure.model.kinds import Registry
from tenure.model.outcomes import Outcome
from tenure.model.wakeup import Wakeup
from tenure.store import blockers, late_outputs, workers
from tenure.store.claims import HeldJob
from tenure.store.link import Link
from tenure.worker.process.pool import ProcessPool, ProcessSettings
from tenure.worker.run import settlement as settlements
from tenure.worker.run.abort import Aborted, AbortReason
from tenure.worker.run.announcements import Announcements
from tenure.worker.run.blocker_results import MOST_BLOCKERS
from tenure.worker.run.calling import Caller
from tenure.worker.run.context import context_of
from tenure.worker.run.failure_log import FailureLevels, log_failure
from tenure.worker.run.late_failures import LateFailures
from tenure.worker.run.resources import Resources
from tenure.worker.run.run import Run
from tenure.worker.run.services import LoopServices
from tenure.worker.run.settlement import Settlement
from tenure.worker.run.settler import Settler
from tenure.worker.run.steps import StepWriter
from tenure.worker.run.transactions import settle_open, take
from tenure.worker.run.updates import UpdateWriter
from tenure.worker.run.waiting_runs import WaitingRuns

log = logging.getLogger("tenure")

MOST_ABANDONED = 50
"""Threads and coroutines that ignored an abort. With this many, the process is replaced."""

FLUSH_PATIENCE = 5.0
"""Seconds for the last outcomes at a stop, even if the grace period is over. Jobs whose outcome cannot be written are requeued
when the lease expires."""

CLOSE_PATIENCE = 1.0


class Slots:
    def __init__(
        self,
        link: Link,
        kinds: Registry,
        concurrency: int,
        process_pool: ProcessSettings,
        *,
        notify: Callable[[Wakeup], None],
        freed: Callable[[], None],
        released: Callable[[Run], None],
        linked: Callable[[Wakeup], None],
        doubt: Callable[[list[Run]], None],
        needs_replacement: Callable[[], None],
        events: Events,
        levels: FailureLevels,
        worker: str,
    ) -> None:
        """`freed()` is called when a slot is free or an outcome is written, `released(run)` when a job under a limit is settled,
        `linked(wakeup)` when the next link of a chain is enqueued, `doubt(runs)` when runs may no longer hold their jobs."""
        self._link = link
        self._freed = freed
        self._needs_replacement = needs_replacement
        self._levels = levels
        self._worker = worker
        self._announcements = Announcements(
            notify=notify, released=released, linked=linked, events=events, levels=levels, worker=worker
        )
        self.updates = UpdateWriter(link, watched=lambda job_id: notify(Wakeup.progress_changed(job_id)), lost=doubt)
        self.settler = Settler(link, self._announcements.settled, self._on_lost, self.updates.flush, freed)
        # Threads are started as needed; abandoned ones must not delay the others.
        self._threads = ThreadPoolExecutor(concurrency + MOST_ABANDONED, thread_name_prefix="tenure")
        self._resources = Resources(link.database, concurrency)
        steps = StepWriter(link, lost=doubt)
        self._services = LoopServices(
            self.updates,
            steps,
            self._resources,
            threads=self._threads,
            settled=self._announcements.settled,
            announce=self._announcements.wake,
            events=events,
            kinds=kinds,
        )
        self.process_pool = ProcessPool(link.database, process_pool, self._services, kinds)
        self._late = LateFailures(link, events)
        self._caller = Caller(kinds, self._threads, self.process_pool)
        self._concurrency = concurrency
        self._services.call_in_process = self.process_pool.call
        self.waiting = WaitingRuns(concurrency)
        self.runs: dict[str, Run] = {}
        """By job, the newest run of each."""
        self.finished = 0
        self._stale: set[Run] = set()
        self._abandoned: set[Run] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._emptied = asyncio.Event()
        self._patience: asyncio.Timeout | None = None

    @property
    def count(self) -> int:
        """Runs that have a slot."""
        return len(self.runs) + len(self._stale) - len(self.waiting)

    def all(self) -> list[Run]:
        return [*self.runs.values(), *self._stale]

    @property
    def held(self) -> set[HeldJob]:
        """Jobs that run or wait for a slot here, or whose outcome is still to be written."""
        return {HeldJob(run.job_id, run.claim_id) for run in (*self.all(), *self.settler.runs)}

    # Stopping

    async def drained(self, seconds: float) -> None:
        """Returns when no job runs any more, or after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds) as self._patience:
                await self._until_empty()
        self._patience = None

    async def cleaned_up(self, seconds: float) -> None:
        """As `drained()`, for aborted handlers: `hurry()` does not take the time for their clean-up from them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until_empty()

    async def _until_empty(self) -> None:
        while self.count:
            self._emptied.clear()
            await self._emptied.wait()

    def hurry(self, seconds: float = 0.0) -> None:
        """Shortens a current wait for jobs or outcomes to at most `seconds`."""
        if self._patience is not None and self._patience.when() is not None:
            end = asyncio.get_running_loop().time() + seconds
            self._patience.reschedule(min(end, self._patience.when() or end))

    def abort_all(self, reason: AbortReason) -> None:
        for run in self.all():
            run.abort(reason)

    def lose_all(self, reason: AbortReason) -> None:
        for run in self.all():
            self.lose(run, reason)

    def requeue_all(self) -> None:
        for run in self.all():
            # A transaction that is being committed settles its job itself; other jobs may no longer be held by this worker.
            self._close(run, settlements.requeued(run) if run.abort_reason == "shutdown" else None)

    async def settled(self, seconds: float) -> None:
        """Returns when every outcome is written, or after `seconds`: in an outage, the rest of the grace period."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds) as self._patience:
                await self.settler.written()
        self._patience = None
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_PATIENCE):
                await self.settler.written()
        if unwritten := self.settler.unwritten:
            log.warning("outcomes could not be written before shutdown; these jobs will run again", extra={"jobs": unwritten})

    async def close(self) -> None:
        await self.process_pool.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self._resources.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # Running

    def requeue(self, run: Run) -> None:
        """It was claimed, and is not started by this worker."""
        if run.settle():
            self.settler.add(settlements.requeued(run))

    def requeue_waiting(self, *, stuck_only: bool = False) -> None:
        """Runs that have no slot: all of them at a stop, or those that got none for too long."""
        for run in self.waiting.take_stuck(time.monotonic()) if stuck_only else self.waiting.take_all():
            if self.runs.get(run.job_id) is run:
                del self.runs[run.job_id]
            self.requeue(run)

    def add(self, run: Run) -> None:
        """Starts it, or lets it wait for a slot."""
        if (older := self.runs.get(run.job_id)) is not None:
            # Its own lease expired, and this worker claimed the job a second time.
            if older.was_started:
                self._stale.add(older)
            self.lose(older, "taken_by_another_worker")
        self.runs[run.job_id] = run
        if self.count <= self._concurrency:
            self._start(run)
        else:
            self.waiting.add(run)

    def _start(self, run: Run) -> None:
        run.was_started = True
        run.task = asyncio.get_running_loop().create_task(self._execute(run))
        self._announcements.started(run)

    async def _execute(self, run: Run) -> None:
        try:
            # Calls the handler. No settlement: the job was settled already, or lost.
            try:
                settlement: Settlement | None
                settlement = returned = settlements.of_result(run, await self._call(run))
                if run.transaction is not None or run.owes_output:
                    settlement = await self._concluded(run, returned)
            except Outcome as outcome:
                settlement = settlements.of_outcome(run, outcome)
            except (asyncio.CancelledError, Aborted) as error:
                # Without a reason of ours, the handler canceled itself, as its own timeout does: an ordinary failed attempt.
                settlement = self._of_abort(run, error)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - SystemExit in a handler must end the job, not the worker
                settlement = settlements.of_error(run, error)
            # An abandoned thread may still be using the connection; it is not reused before the thread ends.
            if run.transaction is not None and (run.thread is None or run.thread.done()):
                await self._roll_back(run)
            if settlement is not None:
                settlement.instead_of = run.in_doubt
                if settlement.what != run.settled_as and run.settled_itself and run not in self._abandoned:
                    await self._late.report(settlement)
        except BaseException as error:
            self._close(run, self._of_abort(run, error))  # the loop may be closing: nothing may be awaited
            raise
        self._close(run, settlement)
        self._drop_owed_output(run)
        run.task = None  # breaks a reference cycle between run and task, to spare the garbage collector

    def _call(self, run: Run) -> Any:
        # A process reads them itself.
        if run.job.system is not None and run.kind.run_in != "process" and run.system.blockers:
            return self._call_with_blockers(run)
        return self._caller.call(context_of(run, self._services))

    async def _call_with_blockers(self, run: Run) -> Any:
        """The results of the chains that its job has waited for are read first."""
        try:
            run.blockers = await self._link.fetch(blockers.find(run.job_id, most=MOST_BLOCKERS))
        except StoreUnavailable:
            run.signal.abort("error")  # the handler was not called: it is requeued, and no attempt is spent
            raise Aborted("error") from None
        return await self._caller.call(context_of(run, self._services))

    def close_ended(self, run: Run) -> bool:
        """Frees the slot of a run whose task was canceled before its first step, so that `_execute` never ran."""
        if run.task is None or not run.task.done():
            return False
        self._close(run, self._of_abort(run, asyncio.CancelledError("the task of the handler was canceled")))
        return True

    async def _concluded(self, run: Run, settlement: Settlement) -> Settlement | None:
        """After the handler has returned: its own transaction may have settled the job, or is to do so now."""
        if run.transaction is not None and not run.settled:
            await settle_open(run, self._services, lambda: settlement, self._threads)
            return None
        if run.settled and run.owes_output and settlement.what == "completed" and run not in self._abandoned:
            await self._add_output(run, settlement)
        return settlement

    def _of_abort(self, run: Run, error: BaseException) -> Settlement | None:
        match run.abort_reason:
            case "timeout":
                return settlements.of_timeout(run, error)
            case "shutdown" | "error":
                return settlements.requeued(run)
            case None:
                return settlements.of_error(run, error)
            case _:
                return None  # this worker no longer holds the job: nothing to write

    def _close(self, run: Run, settlement: Settlement | None) -> None:
        """Ends the run: its outcome is written, unless that happened already or this worker no longer holds the job."""
        if run.settle() and settlement is not None:
            if settlement.what not in ("completed", "continued", "crashed"):
                log_failure(settlement, self._levels, self._worker)
            self.settler.add(settlement)
        self._forget(run)

    def _forget(self, run: Run) -> None:
        if self.runs.get(run.job_id) is run:
            del self.runs[run.job_id]
        elif run in self._stale:
            self._stale.discard(run)
        else:
            return
        self.finished += 1
        self.waiting.learn(time.monotonic() - run.started)
        if run.thread is not None and not run.thread.done():
            self._abandon_thread(run, run.thread)
        waiting = len(self.waiting)
        running = len(self.runs) + len(self._stale) - waiting
        if waiting and running < self._concurrency:
            following = self.waiting.next()
            following.started = time.monotonic()
            self._start(following)
        elif not running:
            self._emptied.set()
        self._freed()

    # The handler's own transaction

    async def _roll_back(self, run: Run) -> None:
        transaction = take(run)
        if transaction is not None:
            with suppress(Exception):  # a connection that is broken has rolled back already
                await transaction.rollback(self._threads)

    async def _add_output(self, run: Run, settlement: Settlement) -> None:
        """The handler settled its job in its own session, and returned a result afterwards."""
        try:
            await self._link.fetch(late_outputs.set_output(run.job_id, run.claim_id, settlement.output or "null"))
            run.owes_output = False
        except StoreUnavailable:
            log.warning(
                "the output of a completed job could not be stored; use ctx.set_output() to store it with the completion",
                extra=run.log_fields,
            )

    def _drop_owed_output(self, run: Run) -> None:
        """The handler failed after its block, or was abandoned: `result()` must not wait for an output any longer."""
        if run.owes_output:
            run.owes_output = False
            self._background(self._link.fetch(late_outputs.drop_owed_output(run.claim_id)))

    # Handlers that ignore an abort

    def abandon(self, run: Run) -> None:
        """A coroutine that was cancelled and continues: it loses its slot, and its writes are rejected."""
        assert run.task is not None
        self._abandoned.add(run)
        self._report_abandoned(run)
        run.task.add_done_callback(lambda _: self._abandoned.discard(run))
        self._close(run, self._of_abort(run, asyncio.CancelledError()))
        self._drop_owed_output(run)

    def _abandon_thread(self, run: Run, thread: Future[Any]) -> None:
        self._abandoned.add(run)
        self._report_abandoned(run)
        thread.add_done_callback(lambda _: self._abandoned.discard(run))

    def _report_abandoned(self, run: Run) -> None:
        reason = run.abort_reason or "error"
        log.error(
            "a handler did not end when aborted: it is abandoned, and its writes are rejected",
            extra={**run.log_fields, "reason": reason},
        )
        self._announcements.abandoned(run, reason)
        if run.transaction is not None and run.transaction.pid is not None:
            # It may still be using the connection, so only the server can end its transaction.
            age = time.monotonic() - run.transaction.opened
            self._background(self._link.fetch(workers.end_session(run.transaction.pid, age)))
        if len(self._abandoned) >= MOST_ABANDONED:
            log.critical(
                "too many handlers did not end when aborted: this process will be replaced",
                extra={"handlers": len(self._abandoned)},
            )
            self._needs_replacement()

    def _background(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.debug("a statement in the background failed", extra={"error": str(task.exception())})

    # Settling

    def _on_lost(self, settlement: Settlement) -> None:
        run = settlement.run
        log.warning("outcome rejected: the run had lost its lease", extra=run.log_fields)
        self._announcements.lost(run, run.abort_reason or "taken_by_another_worker")

    def lose(self, run: Run, reason: AbortReason) -> None:
        """The run no longer holds its job. A transaction that is being committed detects that itself."""
        if not (run.settled or run.committing):
            if not run.was_started and self.runs.get(run.job_id) is run:
                self.waiting.remove(run)
                del self.runs[run.job_id]
            run.abort(reason)
            self._announcements.lost(run, reason)
