"""A pool: keeps the wanted number of equal processes running."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from tenure.manager.child_lifecycle import ChildLifecycle
from tenure.manager.plan import PoolPlan
from tenure.manager.restarts import Restarts
from tenure.manager.services import SupervisorServices
from tenure.manager.spec import ChildHello
from tenure.model.errors import ConfigError, SchemaMismatch
from tenure.store.faults import ConnectionRejected

log = logging.getLogger("tenure")

EXIT_FAILED, EXIT_RESTART_LIMIT = 1, 9
EXIT_CODES: dict[type[Exception], int] = {ConfigError: 3, ConnectionRejected: 3, SchemaMismatch: 4}

READY_TIMEOUT = 300.0
"""Seconds that a replacement may take to become ready. Imports may be slow, but not endless."""


class Pool:
    def __init__(
        self, plan: PoolPlan, services: SupervisorServices, *, ready: Callable[[ChildHello], None] = lambda _: None
    ) -> None:
        self.plan = plan
        self.hello: ChildHello | None = None
        """The description of the app from the newest of its processes."""
        self.wanted = plan.default_count
        self._services = services
        self._on_child_ready = ready
        self._lifecycles: dict[ChildLifecycle, asyncio.Task[None]] = {}
        self._restarts = Restarts(plan.restart_limit)
        self._changed = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def active(self) -> list[ChildLifecycle]:
        """Processes that are neither stopping nor spare."""
        return [lifecycle for lifecycle in self._lifecycles if not lifecycle.spare and not lifecycle.child.stopping]

    @property
    def running(self) -> int:
        """Jobs that run in the active processes."""
        return sum(lifecycle.child.running for lifecycle in self.active)

    def resize(self, count: int) -> None:
        if count != self.wanted and not self._is_idle:
            self.wanted = count
            self.wake()

    @property
    def _is_idle(self) -> bool:
        """Other pools serve all queues."""
        return self.hello is not None and not self.hello.queues

    def wake(self) -> None:
        self._changed.set()

    async def keep(self) -> None:
        """Returns when the supervisor stops and all processes of the pool have ended."""
        while not self._services.stopping.is_set():
            self._changed.clear()
            self._drain_excess()
            while self._too_few() and not self._restarts.pause:
                self._start_child()
            await self._rest()
        while self._lifecycles:
            await asyncio.wait(self._lifecycles.values())

    async def replace(self, lifecycle: ChildLifecycle) -> bool:
        """Starts a new process, waits until it is ready, then drains the old one. False: the new one could not start, and the
        old one continues."""
        async with self._one_at_a_time:
            if lifecycle not in self.active:
                return True
            fresh = self._start_child(spare=True)
            if not await fresh.wait_ready(READY_TIMEOUT):
                fresh.child.stopping = True
                fresh.child.kill()
                if not self._services.stopping.is_set():
                    why = fresh.error or "the new process ended or was not ready in time"
                    facts = {"child_pid": lifecycle.child.pid, "pool": self.name, "reason": str(why)}
                    log.error("worker process not replaced; the old one continues", extra=facts)
                return False
            fresh.spare = False
            lifecycle.drain()
            self.wake()
            return True

    # Number of processes

    def _too_few(self) -> bool:
        if len(self.active) >= self.wanted:
            return False
        # Processes that still drain count towards the maximum, but there are never fewer active ones than the default.
        return len(self.active) < self.plan.default_count or len(self._lifecycles) < self.plan.max_count

    def _drain_excess(self) -> None:
        """Drains the least busy and then the youngest processes."""
        too_many = len(self.active) - self.wanted
        for lifecycle in sorted(self.active, key=lambda lifecycle: (lifecycle.child.running, -lifecycle.child.started))[
            : max(0, too_many)
        ]:
            lifecycle.drain()

    async def _rest(self) -> None:
        pause = self._restarts.pause
        with suppress(TimeoutError):
            async with asyncio.timeout(pause or None):
                await self._changed.wait()

    # One process

    def _start_child(self, *, spare: bool = False) -> ChildLifecycle:
        lifecycle = ChildLifecycle(self.plan.spec, self._services, spare=spare, ready=self._on_ready)
        task = self._lifecycles[lifecycle] = asyncio.create_task(lifecycle.run())
        task.add_done_callback(lambda _: self._on_ended(lifecycle))
        return lifecycle

    def _on_ready(self, hello: ChildHello) -> None:
        self.hello = hello
        self._on_child_ready(hello)
        if self._is_idle:
            log.warning("pool stops its processes, because other pools serve all queues", extra={"pool": self.name})
            self.wanted = 0
            self.wake()

    def _on_ended(self, lifecycle: ChildLifecycle) -> None:
        del self._lifecycles[lifecycle]
        self.wake()
        if lifecycle.spare:
            return  # `replace()` handles it
        if lifecycle.error is not None and not self._services.stopping.is_set():
            self._on_error(lifecycle.error)
        self._restarts.ended(lifecycle)
        if self._restarts.limit_reached and not any(other.is_stable for other in self.active):
            self._services.fail(
                EXIT_RESTART_LIMIT,
                f"pool {self.name}: {self._restarts.early_crashes} processes in a row died within seconds of their start "
                "(workers.restart_limit): see the causes in the log above",
            )

    def _on_error(self, error: Exception) -> None:
        """At the first start the supervisor fails. Later the other processes continue, and the next start may succeed."""
        if self.hello is not None:
            log.error("worker process cannot start", extra={"pool": self.name, "reason": str(error)})
            return
        code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), EXIT_FAILED)
        self._services.fail(code, str(error))
