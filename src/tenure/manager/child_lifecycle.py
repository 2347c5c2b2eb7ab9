"""The lifecycle of one child process: start, registration, work, end, and the requeue of its jobs."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterable
from itertools import count
from uuid import UUID

from tenure.leader.reporting import Reporting
from tenure.leader.requeue import requeue_jobs
from tenure.leader.settings import LeaderSettings
from tenure.manager.process import ChildProcess
from tenure.manager.services import SupervisorServices
from tenure.manager.spec import ChildHello, ChildSpec
from tenure.model.events import WorkerDied
from tenure.store import workers
from tenure.store.link import Link
from tenure.store.workers import Registration

log = logging.getLogger("tenure")

EARLY_CRASH = 10.0
"""Seconds. A child that dies sooner than this after its start is replaced after a growing pause."""

STOP_SIGNALS = (-signal.SIGTERM, -signal.SIGINT)
"""Exit codes of a child that received the stop signal of its process group before it could handle signals."""


class ChildLifecycle:
    def __init__(
        self, spec: ChildSpec, services: SupervisorServices, *, spare: bool = False, ready: Callable[[ChildHello], None]
    ) -> None:
        """A `spare` child replaces another one once it is ready."""
        self.child = ChildProcess(spec, services.runs)
        self.spare = spare
        self.error: Exception | None = None
        """Why the child could not start."""
        self._services = services
        self._on_child_ready = ready
        self._ready = asyncio.Event()
        self._ended = asyncio.Event()
        self._age_at_end = 0.0

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    @property
    def crashed_early(self) -> bool:
        """Ended soon after its start without having been asked to stop."""
        if not self._ended.is_set() or self.child.stopped_cleanly or self.child.stopping:
            return False
        return self._age_at_end < EARLY_CRASH

    @property
    def is_stable(self) -> bool:
        """Has worked longer than `EARLY_CRASH`."""
        return self.is_ready and not self._ended.is_set() and self.child.age >= EARLY_CRASH

    async def wait_ready(self, seconds: float) -> bool:
        """Whether it became ready within that time."""
        await _first((self._ready, self._ended), seconds)
        return self.is_ready and not self._ended.is_set()

    async def wait_ended(self, seconds: float) -> None:
        """Returns when it has ended, or after `seconds`."""
        await _first((self._ended,), seconds)

    def drain(self) -> None:
        """The child finishes its jobs within the drain time, and then ends. Does not wait for that."""
        self.child.stop(self.child.hello.drain if self.child.hello else 0.0)

    async def run(self) -> None:
        """Never raises: a failure is stored in `error`."""
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001 - the loop that keeps the number of processes must not end
            self.error = error
        finally:
            self._ended.set()

    @property
    def _is_unwanted(self) -> bool:
        return self.child.stopping or self._services.stopping.is_set()

    async def _run(self) -> None:
        child, services = self.child, self._services
        child.started = time.monotonic()
        await child.spawn()
        taken = {other.number for other in services.children}
        child.number = next(number for number in count(1) if number not in taken)
        services.children.add(child)
        try:
            hello = await child.receive_hello()
            if hello is not None and not self._is_unwanted:
                await services.open(hello)
                await services.declare(hello)
                await self._register(hello)
            elif hello is not None:
                child.stop(0.0)
            await child.watch(services.renew_soon)
        finally:
            self._age_at_end = child.age
            services.children.discard(child)
            child.kill()
            child.close()
        if child.serving:
            await self._requeue_jobs()
        elif child.exit_code in STOP_SIGNALS:
            log.info("worker process was stopped before it was ready", extra=facts_of(child))
        elif not self._is_unwanted:
            log.error("worker process died before it was ready", extra=facts_of(child))

    async def _register(self, hello: ChildHello) -> None:
        child, services = self.child, self._services
        registration = Registration(
            id=child.worker_id,
            supervisor_id=services.id,
            pid=child.pid,
            queues=hello.queues,
            kinds=hello.kinds,
            capabilities=hello.capabilities,
            concurrency=hello.concurrency,
            name=child.name,
            app_version=hello.app_version,
        )
        await services.retry_while_unavailable(lambda: services.link.fetch(workers.register(registration, hello.lease)))
        child.assign_worker()
        services.events.send_waiting()
        if self._is_unwanted:
            child.stop(0.0)
            return
        self._ready.set()
        self._on_child_ready(hello)

    async def _requeue_jobs(self) -> None:
        """The process has ended, so its jobs are requeued now instead of when its lease expires."""
        child, services = self.child, self._services
        how: workers.Death = "stopped" if child.stopped_cleanly or child.killed_late or services.stopping.is_set() else "crashed"
        if how == "crashed":
            log.error("worker process died; starting another", extra=facts_of(child))
            cause = describe_exit(child.exit_code)
            services.deaths += 1
            services.events.emit(WorkerDied(worker_id=UUID(child.worker_id), cause=cause, worker=child.name))

        leader = child.hello.leader if child.hello else LeaderSettings()
        reporting = Reporting(services.notify, services.events, services.runs.add_requeued, leader.dead_letter_level)

        async def requeue() -> None:
            # Its own connection: this may take long and must not delay the renewal. The ended process has released its
            # connections.
            async with Link(services.link.database, "return", hot=True) as link:
                await link.fetch(workers.condemn(child.worker_id, services.id, how))
                await requeue_jobs(link, child.worker_id, reporting)

        await services.retry_while_unavailable(requeue)
        services.renew_soon()  # the renewal also returns whether jobs must now run in isolation


async def _first(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Returns when one of them is set, or after `seconds`."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def facts_of(child: ChildProcess) -> dict[str, object]:
    """Log fields of a child that has ended."""
    return {"child_pid": child.pid, "worker": child.name, "pool": child.spec.pool, "cause": describe_exit(child.exit_code)}


def describe_exit(code: int | None) -> str:
    if code is None:
        return "unknown"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
