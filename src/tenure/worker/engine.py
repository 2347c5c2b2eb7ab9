"""Runs handlers in a process: claims jobs into free slots, settles their outcomes, and waits for the next wake-up."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tenure.model.claim_counts import ClaimCount, ClaimCounter
from tenure.model.event_bus import Events
from tenure.model.kinds import Registry
from tenure.model.wakeup import Topic, Wakeup
from tenure.periodic import FOREVER, PeriodicTask, jittered
from tenure.store.claims import HeldJob
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups
from tenure.worker.claim.claimer import ClaimScope, WorkerCondemned
from tenure.worker.claim.combined_claimer import CombinedClaimer
from tenure.worker.claim.ended_claims import EndedClaims
from tenure.worker.claim.held_jobs import HeldJobs
from tenure.worker.process.pool import ProcessSettings
from tenure.worker.run.abort import AbortReason
from tenure.worker.run.calling import ABORT_PATIENCE
from tenure.worker.run.failure_log import FailureLevels
from tenure.worker.run.monitor import RunMonitor
from tenure.worker.run.run import Run
from tenure.worker.run.settler import LOCK_TIMEOUT, POOLED_LIMIT
from tenure.worker.run.slots import Slots

log = logging.getLogger("tenure")

WAKE_OTHERS_EVERY = 0.5
"""Shortest time, in seconds, between two notifications by which a worker with full slots wakes others."""

CONDEMNED_REST = 0.5
"""Seconds before a worker whose lease has expired claims again: it may have been renewed, or the process is about to stop."""


CLAIM_PATIENCE = 5.0
"""Seconds that a stop waits for the current claim. The jobs it claims are requeued at once."""

IDLE_POLL = 0.002
"""Seconds between two looks of `idle()`."""

END_PATIENCE = 1.0
"""Seconds that a stop waits for any other current statement."""

WOKEN_WORKERS = 8
"""About this many of the workers that serve the same queues claim when a job is announced. If all did, each job would cost
a claim by each of them."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    concurrency: int = 10
    """How many jobs run at a time in one process."""

    poll_busy: float = 0.25
    """Longest wait between two claims while jobs are running or were found recently. Notifications end it early."""

    poll_idle: float = 2.0
    """Longest wait between two claims when idle. Jobs whose notification was lost are found within it."""

    check_every: float = 5.0
    """How often to check that long runs still hold their jobs."""

    next_job_delay: float = 0.0
    """A pause between the end of a job and the claim that fills its slot again."""

    process_pool: ProcessSettings = field(default_factory=ProcessSettings)
    failures: FailureLevels = field(default_factory=FailureLevels)
    """At which levels failed attempts and dead letters are logged."""


class Engine:
    def __init__(
        self,
        database: DatabaseTarget,
        kinds: Registry,
        scope: ClaimScope,
        worker_id: str,
        settings: EngineSettings,
        *,
        notify: Callable[[Wakeup], None],
        condemned: Callable[[], None],
        needs_replacement: Callable[[], None] = lambda: None,
        events: Events | None = None,
        name: str = "",
    ) -> None:
        """`notify(wakeup)` wakes others after a commit; `condemned()` is called when this worker has lost its lease,
        `needs_replacement()` when so many handlers ignored an abort that the process should be replaced. `name` is the worker's,
        for logs and events."""
        self.worker_id = worker_id
        self._settings = settings
        self._scope = scope
        self._condemned = condemned
        self._notify = notify
        within = POOLED_LIMIT if database.pooled else None
        self._settle_link = Link(database, "settle", hot=True, within=within, lock_timeout=LOCK_TIMEOUT)
        self._held_jobs = HeldJobs(self._settle_link, worker_id, scope.queues, self, notify)
        self._ended_claims = EndedClaims(self._settle_link, worker_id, self)
        self._claimer = CombinedClaimer(
            database, kinds, scope, worker_id, notify=notify, recorded=self._ended_claims.add, unanswered=self._held_jobs.doubt
        )
        events = events or Events()
        self._slots = Slots(
            self._settle_link,
            kinds,
            settings.concurrency,
            settings.process_pool,
            notify=notify,
            freed=self._on_freed,
            released=self._on_released,
            linked=self.on_wakeup,
            doubt=lambda runs: self._monitor.doubt(run.job_id for run in runs),
            needs_replacement=needs_replacement,
            events=events,
            levels=settings.failures,
            worker=name,
        )
        self._monitor = RunMonitor(self._slots, self._settle_link, settings.check_every)
        # The next claim is sent before the jobs of the last one start: PostgreSQL works on it while they run.
        self._claim_task = PeriodicTask("claimer", self._claim_turn, at_once=True)
        self._claim_counter = ClaimCounter()
        self.peers = 1
        """How many workers serve the same queues, including this one."""
        self._next_wake = 0.0
        self._next_claim = 0.0
        self._wants_more = False
        self._claim_is_due = False
        """The claim task was woken since its last turn began: jobs that end need not find out again whether to wake it."""
        self._stopping = False
        self._stop_by = math.inf
        """When the grace period of a stop is over, by the monotonic clock."""
        self._last_found = 0.0
        self._empty_claims = 0
        """Claims that found no job."""
        self._tasks: dict[PeriodicTask, asyncio.Task[None]] = {}

    def wakeups(self, on_wakeup: Callable[[Wakeup], None]) -> Wakeups:
        """On the connections of this engine: LISTEN on the one that claims, NOTIFY on the one that settles."""
        return Wakeups(self._settle_link.database, on_wakeup, listen_on=self._claimer.link, notify_on=self._settle_link)

    @property
    def running(self) -> int:
        return self._slots.count + len(self._slots.waiting)

    @property
    def running_kinds(self) -> list[str]:
        """Of each job that runs or waits for a slot here."""
        return [run.kind.name for run in self._slots.all()]

    @property
    def finished(self) -> int:
        """Runs that have ended, with any outcome."""
        return self._slots.finished

    @property
    def unwritten(self) -> int:
        """Outcomes that are not written yet: PostgreSQL does not answer, or their rows are locked or refused."""
        return self._slots.settler.unwritten

    def take_claim_count(self) -> ClaimCount | None:
        """Claims and lost connections since the last call, if there were any."""
        return self._claim_counter.take(self._claimer.link.reconnects + self._settle_link.reconnects)

    @property
    def held(self) -> set[HeldJob]:
        return self._slots.held

    @property
    def claims_under_way(self) -> set[str]:
        return self._claimer.under_way.ids

    def start(self) -> None:
        of_runs = (self._slots.settler.task, self._slots.updates.task, self._monitor.task, self._monitor.checks)
        tasks = (self._claim_task, *of_runs, self._held_jobs.task, self._ended_claims.task)
        self._tasks = {periodic: asyncio.create_task(periodic.run()) for periodic in tasks}

    def on_wakeup(self, wakeup: Wakeup) -> None:
        match wakeup.topic:
            case Topic.LOST:
                self._monitor.doubt([wakeup.subject] if wakeup.subject else self._slots.runs)
            case Topic.LIMITS:
                self._claimer.limits_changed()
                self._claim_task.wake()
            case Topic.JOBS if wakeup.subject in self._scope.queues and self._is_chosen():
                self._look_for_jobs()
            case Topic.MISSED:
                self._look_for_jobs()

    def _look_for_jobs(self) -> None:
        self._last_found = time.monotonic()
        self._claimer.nudge()
        self._claim_task.wake()

    def _is_chosen(self) -> bool:
        return random.random() * self.peers < WOKEN_WORKERS  # noqa: S311

    async def idle(self) -> None:
        """Returns when no job runs here, every outcome is written, and no job can be claimed. For tests."""
        seen, empty = -1, 0
        while True:
            if self.running or self._slots.settler.unwritten or self.finished != seen:
                seen, empty = self.finished, self._empty_claims
            elif self._empty_claims >= empty + 2:  # the first of them may have begun before the last outcome was written
                return
            self._look_for_jobs()
            await asyncio.sleep(IDLE_POLL)

    def lose(self, reason: AbortReason) -> None:
        """No run of this process holds its job any more."""
        self._stopping = True
        self._slots.lose_all(reason)

    async def stop(self, grace: float) -> None:
        """Stops claiming, lets jobs finish within `grace` seconds, requeues the others, and writes the outcomes:
        in an outage it keeps trying for the whole grace period. It never takes much longer."""
        self._stopping = True
        self._stop_by = time.monotonic() + grace
        await self._ended(self._claim_task, CLAIM_PATIENCE)
        self._slots.requeue_waiting()
        await self._slots.drained(self._stop_by - time.monotonic())
        self._slots.abort_all("shutdown")
        await self._slots.cleaned_up(ABORT_PATIENCE)
        self._slots.requeue_all()
        await self._slots.settled(self._stop_by - time.monotonic())
        for periodic in self._tasks:
            await self._ended(periodic, END_PATIENCE)
        await self._slots.close()
        await self._claimer.close()
        await self._settle_link.close()

    async def _ended(self, periodic: PeriodicTask, patience: float) -> None:
        """Lets the current turn finish: a statement that is cut off may still be committed."""
        periodic.end()
        if task := self._tasks.get(periodic):
            await asyncio.wait([task], timeout=patience)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def hurry(self, grace: float = 0.0) -> None:
        """Limits what is left of a current stop to `grace` seconds, also of the waits that have not begun yet."""
        self._stop_by = min(self._stop_by, time.monotonic() + grace)
        self._slots.hurry(grace)

    # Claiming

    async def _claim_turn(self) -> float:
        self._claim_is_due = False
        ahead = self._claimed_ahead()
        free = self._free_slots(ahead)
        if self._stopping or free <= 0:
            self._wants_more = True
            return FOREVER
        if (pause := self._next_claim - time.monotonic()) > 0:
            return pause
        began = time.monotonic()
        try:
            runs = await self._claimer.claim(free)
            self._claim_counter.add(time.monotonic() - began)
            self._receive(runs)
        except WorkerCondemned:
            self._condemned()
            return CONDEMNED_REST
        finally:
            self._claimer.under_way.started()
        self._wants_more = len(runs) == free
        self._empty_claims += not runs
        if self._wants_more and self.peers > WOKEN_WORKERS:
            self._wake_others({run.queue for run in runs})
        if runs:
            self._last_found = time.monotonic()
        if self._wants_more:
            return 0.0
        return min(self._settings.poll_busy if runs else self._idle_rest(), self._claimer.rest)

    def _receive(self, runs: Iterable[Run]) -> None:
        """Requeues what was claimed while the stop was requested: these jobs have not started."""
        for run in runs:
            if self._stopping:
                self._slots.requeue(run)
            else:
                self._slots.add(run)

    def _wake_others(self, queues: Iterable[str]) -> None:
        """There are more jobs than free slots: wakes other workers of these queues."""
        if time.monotonic() >= self._next_wake:
            self._next_wake = time.monotonic() + WAKE_OTHERS_EVERY
            for queue in queues:
                self._notify(Wakeup.new_jobs(queue))

    def _claimed_ahead(self) -> int:
        """How many jobs may be claimed that wait for a slot. None if a suspect is to run alone, after a pause between jobs, or
        beside jobs under limits: they would find no free slot, or count as running while they wait."""
        if self._scope.jobs == "suspects" or self._settings.next_job_delay or self._claimer.under_limits:
            return 0
        return self._slots.waiting.allowance

    def _free_slots(self, ahead: int = 0) -> int:
        if self._scope.jobs == "suspects" and (self._slots.count or self._slots.settler.unwritten):
            return 0  # a suspect runs alone: its outcome must be written before the next one may kill this process
        # Unwritten outcomes count when they accumulate: while PostgreSQL accepts no results, no new jobs are claimed.
        most = self._settings.concurrency + ahead
        overdue = max(0, self._slots.settler.unwritten - 4 * most)
        free = most - self._slots.count - len(self._slots.waiting) - overdue
        # Half the slots at a time: the next claim is on its way while these jobs run.
        return min(free, max(64, most // 2))

    def _idle_rest(self) -> float:
        quiet = time.monotonic() - self._last_found
        return jittered(min(self._settings.poll_idle, max(self._settings.poll_busy, quiet)))

    def _on_freed(self) -> None:
        if self._settings.next_job_delay and time.monotonic() >= self._next_claim:
            self._next_claim = time.monotonic() + self._settings.next_job_delay
        # While jobs wait for slots, a claim is worthwhile when half of them are gone.
        if self._wants_more and not self._claim_is_due and 2 * len(self._slots.waiting) <= self._claimed_ahead():
            self._claim_is_due = True
            self._claim_task.wake()

    def _on_released(self, run: Run) -> None:
        """A limit has room again: claims the next job, or wakes another worker if this one cannot."""
        self._claimer.released()
        self._claim_task.wake()
        if self._stopping or self._free_slots() <= 0:
            self._notify(Wakeup.new_jobs(run.queue))
