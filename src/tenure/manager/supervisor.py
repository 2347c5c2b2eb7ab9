"""The supervisor of `tenure worker` and `tenure up`: runs pools of child processes, renews their leases, and requeues the jobs
of a child that died.

It runs no user code and does not import the app, so no handler can delay the renewal.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from tenure import stop_requests
from tenure.leader.declaring import Declarations, declare
from tenure.leader.leader import Leader
from tenure.manager.event_relay import EventRelay
from tenure.manager.health import TOUCH_EVERY, HealthChecks
from tenure.manager.host import Systemd, Terminal, reap_orphans
from tenure.manager.isolation import IsolationProcess
from tenure.manager.plan import PoolPlan
from tenure.manager.pool import Pool
from tenure.manager.process import AFTER_GRACE, ChildProcess
from tenure.manager.recycling import Recycling
from tenure.manager.rolling import Rolling
from tenure.manager.scaling import Scaling
from tenure.manager.spec import ChildHello
from tenure.model.errors import StoreUnavailable
from tenure.model.ids import uuid7
from tenure.model.run_counts import ProcessMetrics, RunTotals, SupervisorMetrics
from tenure.model.wakeup import Wakeup
from tenure.outages import failures
from tenure.periodic import PeriodicTask, backoff, jittered
from tenure.store import schedules
from tenure.store.connecting import check_settings
from tenure.store.faults import ConnectionRejected, Refused
from tenure.store.link import Link
from tenure.store.migrator import check_schema
from tenure.store.renewals import COUNT_EVERY, renew
from tenure.store.wakeups import Wakeups

log = logging.getLogger("tenure")

EXIT_OK = 0
RETRY_AFTER_STOP = 5.0
"""Seconds after the stop signal for which statements are still retried if PostgreSQL does not answer."""


class Supervisor:
    def __init__(
        self,
        plans: Sequence[PoolPlan],
        *,
        scale_interval: float = 1.0,
        health_file: str | None = None,
        ready: Callable[[ChildHello], None] = lambda _: None,
    ) -> None:
        self.id = str(uuid7())
        self.children: set[ChildProcess] = set()
        self.events = EventRelay(self.children)
        self.stopping = asyncio.Event()
        self.runs = RunTotals()
        self.deaths = 0
        self._renewed_at: float | None = None
        self._pools = [Pool(plan, self, ready=self._on_ready) for plan in plans]
        self._isolation = IsolationProcess(self._pools, self)
        self._rolling = Rolling(self._pools)
        self._recycling = Recycling(self._pools)
        self._scale_interval = scale_interval
        self._on_child_ready = ready
        self._health = HealthChecks(health_file)
        self._systemd = Systemd()
        self._terminal = Terminal()
        self._hello: ChildHello | None = None
        self._opening = asyncio.Lock()
        self._declared: Declarations | None = None
        """What was stored last: the declarations of unchanged code are not stored again when a child is replaced."""
        self._renewals = 0
        self._unrenewed: set[str] = set()
        """Workers whose last renewal PostgreSQL rejected."""
        self._is_up = False
        self._retry_until = math.inf
        self._failure: tuple[int, str] | None = None

    async def run(self) -> int:
        """Runs until a signal stops it. Returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        if stop_requests.was_asked():
            return EXIT_OK  # nothing has been started
        keeping = [asyncio.create_task(pool.keep()) for pool in self._pools]
        replacing = [
            asyncio.create_task(work)
            for work in (self._roll_when_requested(), PeriodicTask("recycling", self._recycling.turn).run())
        ]
        watchdog = asyncio.create_task(PeriodicTask("watchdog", self._feed_watchdog).run())
        await self.stopping.wait()
        await _cancelled(replacing)
        await self._wind_down(keeping)
        await _cancelled([watchdog])
        self._health.remove()
        if self._failure is not None:
            code, why = self._failure
            log.error("supervisor stopped because of a failure", extra={"exit_code": code, "reason": why})
            return code
        if self._hello is not None:
            log.info("stopped")
        return EXIT_OK

    def stop(self) -> None:
        """The first call starts the grace period, the second ends it."""
        again = self.stopping.is_set()
        for child in self.children:
            child.stop(0.0 if again or child.hello is None else child.hello.grace)
        if not again and self._hello is not None:
            log.info("stopping; waiting for running jobs (signal again to stop now)", extra={"grace_seconds": self._grace})
        if not again:
            self._retry_until = time.monotonic() + RETRY_AFTER_STOP
        self.stopping.set()
        self._systemd.stopping()
        for pool in self._pools:
            pool.wake()

    def measure(self) -> SupervisorMetrics:
        """What it knows about its processes now, without asking PostgreSQL."""
        return SupervisorMetrics(
            processes=[_measured(child) for child in self.children if child.serving],
            deaths=self.deaths,
            renewed_ago=None if self._renewed_at is None else time.monotonic() - self._renewed_at,
            runs=self.runs.counts(),
            claims=self.runs.claims,
            requeued=self.runs.requeued,
            reconnects=0 if self._hello is None else self.link.reconnects,
        )

    def roll(self) -> None:
        """Replaces every child, one at a time, by one with the current code."""
        self._rolling.request()

    def fail(self, code: int, why: str) -> None:
        self._failure = self._failure or (code, why)
        if not self.stopping.is_set():
            self.stop()

    def _on_hangup(self) -> None:
        if self._terminal.is_gone:
            self.stop()
        else:
            self.roll()

    @property
    def _grace(self) -> float:
        return max((child.hello.grace for child in self.children if child.hello), default=0.0)

    async def _wind_down(self, keeping: list[asyncio.Task[None]]) -> None:
        keeping = [*keeping, asyncio.create_task(self._isolation.wait_ended())]
        _, late = await asyncio.wait(keeping, timeout=self._grace + AFTER_GRACE)
        for child in self.children:
            child.kill()
        if late:
            await asyncio.wait(late, timeout=AFTER_GRACE)
        if self._hello is not None:
            await self._close()

    async def _roll_when_requested(self) -> None:
        while True:
            await self._rolling.wait_requested()
            log.info("rolling restart started")
            self._systemd.reloading()
            self._isolation.drain()
            if await self._rolling.roll():
                log.info("rolling restart done")
            elif not self.stopping.is_set():
                log.error("rolling restart failed, because a new process could not start; the old ones continue")
            self._systemd.ready()

    def _on_ready(self, hello: ChildHello) -> None:
        self._on_child_ready(hello)
        if not self._is_up and all(pool.hello for pool in self._pools):
            self._is_up = True
            self._systemd.ready()

    # What all children share

    async def open(self, hello: ChildHello) -> None:
        async with self._opening:
            if self._hello is not None:
                return
            database = hello.database
            # For all short statements. Each has a timeout, so that none delays the renewal for long.
            self.link = Link(database, "control", hot=True, within=max(1.0, hello.lease / 3))
            await self.retry_while_unavailable(self.link.open, starting=True)
            await self.retry_while_unavailable(lambda: check_settings(database))
            await self.retry_while_unavailable(lambda: check_schema(database))
            self._leader = Leader(
                database,
                hello.leader,
                link=self.link,
                holder=self.id,
                events=self.events,
                notify=self.notify,
                count_requeued=self.runs.add_requeued,
                not_delivering=self._is_not_delivering,
            )
            self._wakeups = Wakeups(database, self._leader.on_wakeup, notify_on=self.link)
            self._renewal = PeriodicTask("lease", self._renew)
            self._scaling = Scaling(self.link, self._pools, self._scale_interval, self.stopping)
            self._hello = hello
            self._wakeups.start()
            self._leader.start()
            periodic = [self._renewal, PeriodicTask("guard", self._guard)]
            if self._scaling.is_needed:
                periodic.append(PeriodicTask("scaling", self._scaling.turn))
            self._tasks = [asyncio.create_task(task.run()) for task in periodic]

    def notify(self, wakeup: Wakeup) -> None:
        self._wakeups.notify(wakeup)

    def _is_not_delivering(self) -> bool:
        return self._wakeups.not_delivering

    async def declare(self, hello: ChildHello) -> None:
        """Stores what the code declares for all workers. Repeated when another version of the code is loaded."""
        async with self._opening:
            if hello.declared == self._declared:
                return

            async def store() -> None:
                async with Link(hello.database, "declare", hot=True) as link:  # the statements may wait for locks
                    changed = await declare(link, hello.declared, self.id)
                if changed:
                    self._wakeups.notify(Wakeup.schedule_changed())
                self._declared = hello.declared

            await self.retry_while_unavailable(store)

    async def _close(self) -> None:
        await _cancelled(self._tasks)
        with suppress(StoreUnavailable):
            await self.link.fetch(schedules.withdraw_app(self.id))
        await self._leader.stop()
        await self._wakeups.stop()
        await self._scaling.close()
        await self.link.close()

    async def retry_while_unavailable(self, work: Callable[[], Awaitable[object]], *, starting: bool = False) -> None:
        attempts = 0
        while True:
            try:
                await work()
                return
            except StoreUnavailable as error:
                if starting and isinstance(error, ConnectionRejected):
                    raise  # waiting does not help
                attempts += 1
                failures.failed("supervisor", error)
                if time.monotonic() >= self._retry_until:
                    return
            await asyncio.sleep(backoff(attempts))

    def renew_soon(self) -> None:
        if self._hello is not None:
            self._renewal.wake()

    async def _renew(self) -> float:
        assert self._hello is not None
        serving = {child.worker_id: child for child in self.children if child.serving}
        self._renewals += 1
        counting = self._renewals % COUNT_EVERY == 1
        memory = {worker_id: round(child.memory, 1) for worker_id, child in serving.items() if child.memory}
        renewal = await renew(self.link, serving, self._isolation.queues, self._hello.lease, counting=counting, memory=memory)
        self._renewed_at = time.monotonic()
        self._leader.contact.touch()
        self._leader.hint(renewal.free_in)
        for worker_id, peers in renewal.alike.items():
            serving[worker_id].send_peers(peers)
        self._leader.candidates = max(renewal.alike.values(), default=self._leader.candidates)
        self._health.renewed(processes=len(serving), lease=self._hello.lease)
        self._report_unrenewed(renewal.refused)
        for worker_id in serving.keys() - renewal.renewed - renewal.refused.keys():
            lost = {"worker_id": worker_id, "worker": serving[worker_id].name}
            log.warning("worker lost its lease; its runs are aborted", extra=lost)
            serving[worker_id].lose_lease("taken_by_another_worker")
        self._scaling.held = renewal.draining
        if renewal.suspects is not None:
            self._isolation.update(suspects_waiting=renewal.suspects and not renewal.draining)
        return jittered(self._hello.renew or self._hello.lease / 3)

    def _report_unrenewed(self, refused: Mapping[str, Refused]) -> None:
        """Once for each worker. The worker continues until another process condemns it: the next renewal may succeed."""
        for worker_id in refused.keys() - self._unrenewed:
            error = refused[worker_id]
            facts = {"worker_id": worker_id, "sqlstate": error.sqlstate, "error": str(error)}
            log.error("PostgreSQL rejects the renewal of a worker's lease; retrying with every renewal", extra=facts)
        self._unrenewed = set(refused)

    # Local checks, without PostgreSQL

    async def _guard(self) -> float:
        """Kills children that are stalled or did not stop in time, and reaps the orphans of a container."""
        for child in list(self.children):
            if time.monotonic() > child.stop_deadline:
                facts = {"child_pid": child.pid, "worker": child.name}
                log.error("worker process did not stop in time; killing it", extra=facts)
                child.killed_late = True
                child.kill()
            if child.serving and child.hello and child.silence > child.hello.stall_limit:
                facts = {"child_pid": child.pid, "worker": child.name, "silent_seconds": round(child.silence)}
                log.error("worker process is stalled; killing it", extra=facts)
                child.kill()
        if os.getpid() == 1:
            reap_orphans({child.pid for child in self.children})
        running = sum(child.running for child in self.children)
        self._systemd.status(f"{len(self.children)} worker processes, {running} jobs running")
        return 1.0

    async def _feed_watchdog(self) -> float:
        """Reports that the event loop runs, from the start on and also without PostgreSQL."""
        self._health.alive(processes=len(self.children))
        if self._systemd.watchdog_every is None:
            return TOUCH_EVERY
        self._systemd.alive()
        return min(TOUCH_EVERY, self._systemd.watchdog_every)


def _measured(child: ChildProcess) -> ProcessMetrics:
    return ProcessMetrics(
        pool=child.spec.pool,
        name=child.name,
        running=child.running,
        slots=child.hello.concurrency if child.hello else 0,
        memory_mb=child.memory,
        age=child.age,
        unwritten=child.unwritten,
    )


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
