"""`tenure worker`: keeps children running, their leases renewed, and gives back what a dead one held.

Runs no user code, not even the import of the app: nothing can hold up the renewal but the machine itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from tenure.leader.declaring import Declarations, declare
from tenure.leader.duties.reaper import give_back
from tenure.leader.leader import Leader
from tenure.leader.settings import LeaderSettings
from tenure.manager.orphans import reap_orphans
from tenure.manager.process import ChildProcess
from tenure.manager.spec import ChildSpec, Hello
from tenure.manager.telling import Telling
from tenure.model.errors import ConfigError, SchemaMismatch, StoreUnavailable
from tenure.model.events import WorkerDied
from tenure.model.ids import uuid7
from tenure.pacing import Beat, backoff, jittered
from tenure.store import schedules, workers
from tenure.store.link import Link
from tenure.store.migrator import check_schema
from tenure.store.wakeups import Wakeups
from tenure.store.workers import Registration

log = logging.getLogger("tenure")

EXIT_OK, EXIT_FAILED = 0, 1
EXIT_CODES = {ConfigError: 3, SchemaMismatch: 4}

QUICK_DEATH = 10.0
"""A child that dies sooner than this after its start is replaced more and more slowly."""

LONGEST_PAUSE = 30.0
AFTER_GRACE = 9.0
"""Seconds beyond the grace period for clean-up, handing back and the last write, before a child is killed."""


class Supervisor:
    def __init__(self, spec: ChildSpec, count: int, *, ready: Callable[[Hello], None] = lambda _: None) -> None:
        self.id = str(uuid7())
        self._spec = spec
        self._count = count
        self._ready = ready
        self._children: set[ChildProcess] = set()
        self._events = Telling(self._children)
        self._hello: Hello | None = None
        self._opening = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._served = False
        """A child has been ready once: what fails later is not the set-up."""
        self._declared: dict[str, object] | None = None
        """What was last told: old code is not told again when a child is replaced."""
        self._failure: tuple[int, str] | None = None
        self._alone: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Until a signal says stop. Gives the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        slots = [asyncio.create_task(self._keep_child(self._spec)) for _ in range(self._count)]
        await self._stopping.wait()
        await self._wind_down(slots)
        if self._failure is not None:
            code, why = self._failure
            log.error("%s", why)
            return code
        return EXIT_OK

    def stop(self) -> None:
        """The first call starts the grace period, the second ends it."""
        grace = 0.0 if self._stopping.is_set() or self._hello is None else self._hello.grace
        for child in self._children:
            child.stop(grace)
        if not self._stopping.is_set() and self._hello is not None:
            log.info("stopping: running jobs have %g s; a second signal ends that", grace)
        self._stopping.set()

    def restart(self) -> None:
        """Every child ends in order and is replaced."""
        for child in self._children:
            child.stop(self._hello.grace if self._hello else 0.0)

    async def _wind_down(self, slots: list[asyncio.Task[None]]) -> None:
        grace = 0.0 if self._hello is None or self._failure else self._hello.grace
        if self._alone is not None:
            slots.append(self._alone)
        _, late = await asyncio.wait(slots, timeout=grace + AFTER_GRACE)
        for child in self._children:
            child.kill()
        if late:
            await asyncio.wait(late, timeout=AFTER_GRACE)
        if self._hello is not None:
            await self._close()

    # One slot: a child, and after it the next

    async def _keep_child(self, spec: ChildSpec) -> None:
        deaths = 0
        while not self._stopping.is_set():
            child = ChildProcess(spec)
            try:
                await self._live(child)
            except Exception as error:  # noqa: BLE001 - a slot must never end unnoticed
                if self._give_up(error):
                    return
            if spec.jobs == "suspects":
                return
            died_soon = not child.said_bye and time.monotonic() - child.started < QUICK_DEATH
            deaths = deaths + 1 if died_soon else 0
            if deaths > 1 and not self._stopping.is_set():
                await self._pause(min(LONGEST_PAUSE, 0.1 * 2 ** min(deaths, 10)))

    async def _live(self, child: ChildProcess) -> None:
        await child.spawn()
        self._children.add(child)
        try:
            hello = await child.greeted()
            if hello is not None and not self._stopping.is_set():
                await self._open(hello)
                await self._declare(hello)
                await self._admit(child, hello)
            elif hello is not None:
                child.stop(0.0)
            await child.watch(self._renewal.wake if self._hello else lambda: None)
        finally:
            self._children.discard(child)
            child.kill()
            child.close()
        if child.serving:
            await self._bury(child)
        elif not self._stopping.is_set():
            log.error("worker process %d died (%s) before it was ready", child.pid, _cause(child.exit_code))

    async def _admit(self, child: ChildProcess, hello: Hello) -> None:
        registration = Registration(
            id=child.worker_id,
            supervisor_id=self.id,
            pid=child.pid,
            queues=hello.queues,
            kinds=hello.kinds,
            capabilities=hello.capabilities,
            concurrency=hello.concurrency,
        )
        await self._insist(lambda: self._link.fetch(workers.register(registration, hello.lease)))
        child.welcome()
        self._events.catch_up()
        self._served = True
        if self._stopping.is_set():
            child.stop(0.0)
        elif child.spec.jobs != "suspects":
            self._ready(hello)

    async def _bury(self, child: ChildProcess) -> None:
        """The process is gone for certain, so its jobs can come back now instead of when its lease runs out."""
        how: workers.Death = "stopped" if child.said_bye or self._stopping.is_set() else "crashed"
        if how == "crashed":
            log.error("worker process %d died (%s); starting another", child.pid, _cause(child.exit_code))
            self._events.emit(WorkerDied(worker_id=UUID(child.worker_id), cause=_cause(child.exit_code)))

        async def give() -> None:
            await self._link.fetch(workers.condemn(child.worker_id, self.id, how))
            await give_back(self._link, child.worker_id)

        await self._insist(give)
        self._renewal.wake()  # it also tells whether jobs must now run alone

    async def _insist(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeats until PostgreSQL answers, or it is time to go (then the lease does it)."""
        failures = 0
        while True:
            try:
                await work()
                return
            except StoreUnavailable as error:
                failures += 1
                if failures == 1:
                    log.warning("supervisor: %s; trying again", error)
                if self._stopping.is_set() and failures > 3:
                    return
            await asyncio.sleep(backoff(failures))

    def _give_up(self, error: Exception) -> bool:
        """At the first start there is nobody to wait for; later the others go on, and the next try may do better."""
        if self._served:
            log.error("a worker process cannot start: %s", error)
            return False
        code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), EXIT_FAILED)
        self._failure = self._failure or (code, str(error))
        self.stop()
        return True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(jittered(seconds)):
                await self._stopping.wait()

    # What all children share

    async def _open(self, hello: Hello) -> None:
        async with self._opening:
            if self._hello is not None:
                return
            place = hello.place
            await self._insist(lambda: check_schema(place))
            self._link = Link(place, "lease", hot=True)
            self._leader = Leader(
                place,
                LeaderSettings(**hello.leader),
                holder=self.id,
                events=self._events,
                deaf=lambda: self._wakeups.deaf,
            )
            self._wakeups = Wakeups(place, self._leader.hear)
            self._renewal = Beat("lease", self._renew)
            self._hello = hello
            self._wakeups.start()
            self._leader.start()
            self._tasks = [
                asyncio.create_task(self._renewal.run()),
                asyncio.create_task(Beat("guard", self._guard).run()),
            ]

    async def _declare(self, hello: Hello) -> None:
        """What the code says that the whole fleet must know. Told again when another version of it is loaded."""
        async with self._opening:
            if hello.declared == self._declared:
                return

            async def tell() -> None:
                if await declare(self._link, Declarations(**hello.declared)):
                    self._wakeups.tell(schedules.CHANGED)
                self._declared = hello.declared

            await self._insist(tell)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._leader.stop()
        await self._wakeups.stop()
        await self._link.close()

    async def _renew(self) -> float:
        assert self._hello is not None
        serving = {child.worker_id: child for child in self._children if child.serving}
        query = workers.renew(serving, self._hello.queues, self._hello.lease)
        [(renewed, suspects, free_in, _)] = await self._link.fetch(query)
        self._leader.contact.touch()
        self._leader.hint(free_in)
        for worker_id in serving.keys() - set(renewed):
            log.warning("worker %s lost its lease; its runs are aborted", worker_id)
            serving[worker_id].lose("taken_by_another_worker")
        self._mind_suspects(suspects)
        return jittered(self._hello.lease / 3)

    def _mind_suspects(self, waiting: bool) -> None:
        """Jobs that were in two crashes run one at a time in a process of their own, which goes when there are none."""
        if self._alone is not None and self._alone.done():
            self._alone = None
        if waiting and self._alone is None and not self._stopping.is_set():
            spec = replace(self._spec, jobs="suspects", concurrency=1)
            self._alone = asyncio.create_task(self._keep_child(spec))
        elif not waiting:
            for child in self._children:
                if child.spec.jobs == "suspects" and child.running == 0 and time.monotonic() - child.started > QUICK_DEATH:
                    child.stop(self._hello.grace if self._hello else 0.0)

    async def _guard(self) -> float:
        """Local looks only: a frozen child is killed, orphans of a container are buried."""
        assert self._hello is not None
        for child in list(self._children):
            if child.serving and child.silent_for > self._hello.stall_limit:
                log.error("worker process %d has not moved for %.0f s and is killed", child.pid, child.silent_for)
                child.kill()
        if os.getpid() == 1:
            reap_orphans({child.pid for child in self._children})
        return 1.0


def _cause(code: int | None) -> str:
    if code is None:
        return "unknown"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
