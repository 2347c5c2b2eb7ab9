"""The heart of a process that runs handlers: free slots are filled, outcomes are settled, the rest is waiting."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tenure.model.errors import StoreUnavailable
from tenure.model.kinds import Registry
from tenure.model.outcomes import Outcome
from tenure.pacing import FOREVER, Beat, jittered
from tenure.store import jobs
from tenure.store.link import Link
from tenure.store.place import Place
from tenure.worker import settlements
from tenure.worker.claimer import Claimer, Scope, WorkerCondemned
from tenure.worker.runs import Run
from tenure.worker.settlements import Settlement
from tenure.worker.settler import Settler
from tenure.worker.signals import AbortReason

log = logging.getLogger("tenure")

ABORT_PATIENCE = 2.0
"""Seconds that an aborted handler has for its clean-up, before a coroutine's job is handed back over its head and a
thread is left behind."""

CONDEMNED_REST = 0.5
"""Seconds before a worker whose lease has run out asks again: it may have been renewed, or we are about to be told to go."""

FLUSH_PATIENCE = 5.0
"""Seconds that the last outcomes may take at the end. What cannot be written then comes back by the lease."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    concurrency: int = 10
    """How many jobs run at a time in one process."""

    poll_busy: float = 0.25
    """Longest wait between two looks while jobs are running or were found lately. Notifications come sooner."""

    poll_idle: float = 2.0
    """Longest wait when nothing happens. Late arrivals that nobody announced are found within it."""

    check_every: float = 5.0
    """How often long runs are asked whether they are still ours."""

    next_job_delay: float = 0.0
    """A pause before each further claim, for those who want to go slowly."""


class Engine:
    def __init__(
        self,
        place: Place,
        kinds: Registry,
        scope: Scope,
        worker_id: str,
        settings: EngineSettings,
        *,
        tell: Callable[[str], None],
        condemned: Callable[[], None],
    ) -> None:
        """`tell(word)` wakes others after a commit; `condemned()` is called when this worker's lease is gone."""
        self.worker_id = worker_id
        self._settings = settings
        self._scope = scope
        self._tell = tell
        self._condemned = condemned
        # Lost in a crash of the server, a claim simply never happened; so it need not wait for the disk.
        self._claim_link = Link(place, "claim", hot=True, durable=False)
        self._settle_link = Link(place, "settle", hot=True)
        self._claimer = Claimer(self._claim_link, kinds, scope, worker_id)
        self._settler = Settler(self._settle_link, self._on_settled, self._on_lost)
        self._claims = Beat("claimer", self._claim_turn)
        self._watch = Beat("watch", self._watch_turn)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="tenure")
        self._runs: dict[str, Run] = {}
        self._lingering = 0
        self._hungry = False
        self._stopping = False
        self._last_found = 0.0
        self._last_check = time.monotonic()
        self._emptied = asyncio.Event()
        self._patience: asyncio.Timeout | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.completed = 0

    @property
    def running(self) -> int:
        return len(self._runs)

    def start(self) -> None:
        self._tasks = [asyncio.create_task(beat.run()) for beat in (self._claims, self._settler.beat, self._watch)]

    def hear(self, word: str) -> None:
        """A word from the wake-ups: new work in a queue, or (empty) something may have been missed."""
        if not word or (word.startswith("jobs ") and word[5:] in self._scope.queues):
            self._last_found = time.monotonic()
            self._claims.wake()

    def lose(self, reason: AbortReason) -> None:
        """Nothing that runs here is ours any more."""
        self._stopping = True
        for run in list(self._runs.values()):
            run.abort(reason)

    async def stop(self, grace: float) -> None:
        """Stops claiming, lets jobs finish within `grace` seconds, hands back the others. Never waits much longer."""
        self._stopping = True
        await self._drained(grace)
        self._patience = None
        for run in list(self._runs.values()):
            run.abort("shutdown")
        await self._drained(ABORT_PATIENCE, with_threads=True)
        for run in list(self._runs.values()):
            if run.abort_reason == "shutdown":
                self._close(run, settlements.handed_back(run))
            else:
                self._forget(run)  # not ours to hand back
        await self._end()

    def hurry(self) -> None:
        """Ends the grace period of a stop that is under way."""
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def _drained(self, seconds: float, *, with_threads: bool = False) -> None:
        """A thread outlives its run when it is aborted: with_threads gives it the time to notice."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds) as self._patience:
                while self._runs or (with_threads and self._lingering):
                    self._emptied.clear()
                    await self._emptied.wait()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(FLUSH_PATIENCE):
                await self._settler.flush()
        except (StoreUnavailable, TimeoutError):
            log.warning("%d outcomes could not be written at the end; these jobs will run again", self._settler.backlog)
        await self._claim_link.close()
        await self._settle_link.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # Claiming

    async def _claim_turn(self) -> float:
        free = self._free_slots()
        if self._stopping or free <= 0:
            self._hungry = True
            return FOREVER
        try:
            runs = await self._claimer.claim(free)
        except WorkerCondemned:
            self._condemned()
            return CONDEMNED_REST
        for run in runs:
            self._start(run)
        self._hungry = len(runs) == free
        if runs:
            self._last_found = time.monotonic()
            return self._settings.next_job_delay if self._hungry else self._settings.poll_busy
        return self._idle_rest()

    def _free_slots(self) -> int:
        if self._scope.jobs == "suspects" and (self._runs or self._settler.backlog):
            return 0  # alone means alone: the outcome of the one before must be safe before the next may kill us
        # Unsettled outcomes count when they pile up: while PostgreSQL cannot take results, it gives no new work either.
        overdue = max(0, self._settler.backlog - 4 * self._settings.concurrency)
        free = self._settings.concurrency - len(self._runs) - self._lingering - overdue
        # Half the slots at a time: the next claim is on its way while these jobs run.
        return min(free, max(64, self._settings.concurrency // 2))

    def _idle_rest(self) -> float:
        quiet = time.monotonic() - self._last_found
        return jittered(min(self._settings.poll_idle, max(self._settings.poll_busy, quiet)))

    # Running

    def _start(self, run: Run) -> None:
        self._runs[run.job_id] = run
        run.task = asyncio.create_task(self._execute(run))

    async def _execute(self, run: Run) -> None:
        try:
            settlement = settlements.of_result(run, await run.call(self._threads))
        except Outcome as outcome:
            settlement = settlements.of_outcome(run, outcome)
        except asyncio.CancelledError as error:
            if run.abort_reason is None and run.torn_down:
                raise
            aborted = self._of_abort(run, error)
            if aborted is None:
                self._forget(run)
                return
            settlement = aborted
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit in a handler must end the job, not the worker
            settlement = settlements.of_error(run, error)
        self._close(run, settlement)

    def _of_abort(self, run: Run, error: BaseException) -> Settlement | None:
        match run.abort_reason:
            case "timeout":
                return settlements.of_timeout(run)
            case "shutdown":
                return settlements.handed_back(run)
            case None:
                return settlements.of_error(run, error)
            case _:
                return None  # not ours any more: nothing to write

    def _close(self, run: Run, settlement: Settlement) -> None:
        if not run.settled:
            run.settled = True
            self._settler.add(settlement)
            self._forget(run)

    def _forget(self, run: Run) -> None:
        if self._runs.pop(run.job_id, None) is None:
            return
        if run.thread is not None and not run.thread.done():
            self._linger(run.thread)
        if not self._runs:
            self._emptied.set()
        if self._hungry:
            self._claims.wake()

    def _linger(self, thread: Future[Any]) -> None:
        """A thread that does not listen keeps its slot until it ends; its outcome is nobody's any more."""
        self._lingering += 1
        loop = asyncio.get_running_loop()

        def ended() -> None:
            self._lingering -= 1
            self._emptied.set()
            self._claims.wake()

        def tell_loop(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is gone, and the slot with it
                loop.call_soon_threadsafe(ended)

        thread.add_done_callback(tell_loop)

    # Settling

    def _on_settled(self, settlement: Settlement) -> None:
        self.completed += 1
        if settlement.delayed:
            self._tell("due")
        if self._hungry:
            self._claims.wake()

    def _on_lost(self, settlement: Settlement) -> None:
        log.warning(
            "job %s (%s, fence %d): its lease was lost, so its outcome was refused",
            settlement.run.job_id,
            settlement.run.kind.name,
            settlement.run.fence,
        )

    # Watching

    async def _watch_turn(self) -> float:
        for run in list(self._runs.values()):
            if run.overdue:
                run.abort("timeout")
        if time.monotonic() - self._last_check >= self._settings.check_every:
            self._last_check = time.monotonic()
            await self._check_claims()
        return 0.5

    async def _check_claims(self) -> None:
        """Long runs ask whether they are still ours: deleted, cancelled and taken-over jobs stop here."""
        old = [run for run in self._runs.values() if time.monotonic() - run.started >= self._settings.check_every]
        if not old:
            return
        claims = json.dumps([{"id": run.job_id, "claim_id": run.claim_id} for run in old])
        for job_id, reason in await self._settle_link.fetch(jobs.check_claims(claims)):
            if (run := self._runs.get(job_id)) is not None and run in old:
                log.warning("job %s (%s): aborted, %s", job_id, run.kind.name, reason)
                run.abort(reason)
