"""A worker inside the caller's process: engine, lease and leader on one event loop.

Simple to start and to stop, with one drawback: a handler that blocks the loop also delays the renewal of the lease.
`tenure worker` does not have it, because there a process that runs no user code renews the lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from tenure.engine_settings import engine_settings, scope_of
from tenure.leader.declaring import Declarations, declare
from tenure.leader.leader import Leader
from tenure.leader.reporting import Reporting
from tenure.leader.requeue import requeue_jobs
from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import StoreUnavailable
from tenure.model.event_bus import Events
from tenure.model.events import WorkerLeaseLost, WorkerStarted, WorkerStopped, WorkerStopping
from tenure.model.ids import uuid7
from tenure.model.kinds import Registry
from tenure.model.wakeup import Wakeup
from tenure.periodic import PeriodicTask, jittered
from tenure.settings import Settings
from tenure.store import schedules, workers
from tenure.store.connecting import check_settings
from tenure.store.link import Link
from tenure.store.migrator import check_schema
from tenure.store.renewals import COUNT_EVERY, renew
from tenure.store.wakeups import Wakeups
from tenure.store.workers import Registration, check_name, default_name
from tenure.worker.engine import Engine

log = logging.getLogger("tenure")


class InProcessWorker:
    """`start()` returns when jobs are being claimed, `stop()` when the worker has ended. Both may be called repeatedly."""

    def __init__(
        self,
        kinds: Registry,
        settings: Settings,
        events: Events,
        *,
        wakeups: Callable[[], Wakeups],
        owner: str,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        capabilities: Sequence[str] = (),
        grace: Duration | None = None,
        name: str | None = None,
    ) -> None:
        """`wakeups()` returns those of the running event loop, which may be shared."""
        self._kinds = kinds
        self._wakeups_here = wakeups
        self._settings = settings
        self._events = events
        self._owner = owner
        block = settings.workers
        self._scope = scope_of(kinds, queues or block.queues, capabilities or block.capabilities)
        self._engine_settings = engine_settings(settings, concurrency)
        self._grace = settings.workers.grace_seconds if grace is None else to_seconds(grace, what="grace")
        self._supervisor_id = str(uuid7())
        self.name = check_name(name or settings.workers.name or default_name())
        """Shown in `tenure workers`, events and logs."""
        self._engine: Engine | None = None
        self._stopping = False
        self._renewals = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()

    @property
    def worker_id(self) -> str | None:
        return None if self._engine is None else self._engine.worker_id

    async def start(self) -> None:
        if self._engine is not None:
            return
        database = self._settings.database
        await check_settings(database)
        await check_schema(database)
        self._wakeups = self._wakeups_here()
        self._link = self._wakeups.link
        self._leader = Leader(
            database,
            self._settings.leader,
            link=self._link,
            holder=self._supervisor_id,
            events=self._events,
            notify=self._notify,
            not_delivering=lambda: self._wakeups.not_delivering,
        )
        self._stopped.clear()
        self._stopping = False
        async with Link(database, "declare", hot=True) as link:  # the statements may wait for locks
            changed = await declare(link, Declarations.of(self._kinds, self._owner), self._supervisor_id)
        self._engine = await self._register()
        self._engine.start()
        self._unsubscribe = self._wakeups.subscribe(self._on_wakeup)
        self._wakeups.start(self)
        if changed:
            self._wakeups.notify(Wakeup.schedule_changed())
        self._leader.start()
        self._renewal = PeriodicTask("lease", self._renew)
        self._tasks = [asyncio.create_task(self._renewal.run())]
        self._events.emit(
            WorkerStarted(worker_id=UUID(self._engine.worker_id), queues=tuple(self._scope.queues), worker=self.name)
        )

    async def run(self) -> None:
        """Works until it is stopped or cancelled, then shuts down."""
        await self.start()
        try:
            await self._stopped.wait()
        finally:
            await self.stop()

    async def stop(self, timeout: Duration | None = None) -> None:
        """Waits up to `timeout` (the grace period) for running jobs, requeues the others, and shuts down."""
        engine = self._engine
        if engine is None or self._stopping:
            return
        self._stopping = True  # the lease is still renewed, because this worker holds the jobs that still run
        grace = self._grace if timeout is None else to_seconds(timeout, what="timeout")
        self._events.emit(WorkerStopping(worker_id=UUID(engine.worker_id), grace=grace, worker=self.name))
        await engine.stop(grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._engine = None
        with suppress(StoreUnavailable):
            async with Link(self._link.database, "return", hot=True) as link:
                await link.fetch(workers.condemn(engine.worker_id, self._supervisor_id, "stopped"))
                await requeue_jobs(link, engine.worker_id, self._reporting)
                await link.fetch(schedules.withdraw_app(self._supervisor_id))
        await self._leader.stop()
        self._unsubscribe()
        await self._wakeups.stop(self)
        self._events.emit(WorkerStopped(worker_id=UUID(engine.worker_id), worker=self.name))
        self._stopped.set()

    async def _register(self) -> Engine:
        worker_id = str(uuid7())
        registration = Registration(
            id=worker_id,
            supervisor_id=self._supervisor_id,
            pid=os.getpid(),
            queues=self._scope.queues,
            kinds=self._kinds.served,
            capabilities=self._scope.capabilities,
            concurrency=self._engine_settings.concurrency,
            name=self.name,
            app_version=self._settings.app_version or None,
        )
        await self._link.fetch(workers.register(registration, self._settings.workers.lease_timeout_seconds))
        return Engine(
            self._settings.database,
            self._kinds,
            self._scope,
            worker_id,
            self._engine_settings,
            notify=self._wakeups.notify,
            condemned=self._on_condemned,
            events=self._events,
            name=self.name,
        )

    def _on_condemned(self) -> None:
        self._renewal.wake()

    async def _renew(self) -> float:
        engine = self._engine
        if engine is not None:
            lease = self._settings.workers.lease_timeout_seconds
            self._renewals += 1
            counting = self._renewals % COUNT_EVERY == 1
            renewal = await renew(self._link, [engine.worker_id], self._scope.queues, lease, counting=counting)
            engine.peers = renewal.alike.get(engine.worker_id, engine.peers)
            self._leader.candidates = engine.peers
            self._leader.contact.touch()
            self._leader.hint(renewal.free_in)
            if engine.worker_id not in renewal.renewed:
                await self._replace(engine)
        return jittered(self._settings.workers.renew_every)

    async def _replace(self, engine: Engine) -> None:
        """The lease is lost, and the jobs with it: continue with a new worker id."""
        lost = {"worker_id": engine.worker_id, "worker": self.name}
        log.warning("worker lost its lease; its runs are aborted", extra=lost)
        self._events.emit(WorkerLeaseLost(worker_id=UUID(engine.worker_id), worker=self.name))
        engine.lose("taken_by_another_worker")
        if self._stopping:
            return
        self._engine = await self._register()
        self._engine.start()
        await engine.stop(0)

    @property
    def _reporting(self) -> Reporting:
        return Reporting(self._wakeups.notify, self._events, dead_letter_level=self._settings.leader.dead_letter_level)

    def _notify(self, wakeup: Wakeup) -> None:
        self._wakeups.notify(wakeup)

    def _on_wakeup(self, wakeup: Wakeup) -> None:
        if self._engine is not None:
            self._engine.on_wakeup(wakeup)
        self._leader.on_wakeup(wakeup)
