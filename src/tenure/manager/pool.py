"""A pool: as many processes of one kind as are wanted, whatever becomes of each of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from tenure.manager.child_lifecycle import ChildLifecycle
from tenure.manager.plan import Plan
from tenure.manager.restarts import Restarts
from tenure.manager.services import SupervisorServices
from tenure.manager.spec import Hello
from tenure.model.errors import ConfigError, SchemaMismatch
from tenure.store.faults import ConnectionRejected

log = logging.getLogger("tenure")

EXIT_FAILED, EXIT_HOPELESS = 1, 9
EXIT_CODES: dict[type[Exception], int] = {ConfigError: 3, ConnectionRejected: 3, SchemaMismatch: 4}

START_PATIENCE = 300.0
"""Seconds that a replacement may take to become ready; imports may be slow, but not for ever."""


class Pool:
    def __init__(self, plan: Plan, house: SupervisorServices, *, ready: Callable[[Hello], None] = lambda _: None) -> None:
        self.plan = plan
        self.hello: Hello | None = None
        """What the newest of its processes said."""
        self.wanted = plan.default_count
        self._house = house
        self._told_ready = ready
        self._lives: dict[ChildLifecycle, asyncio.Task[None]] = {}
        self._restarts = Restarts(plan.restart_limit)
        self._changed = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def lives(self) -> list[ChildLifecycle]:
        """Those that count: neither on their way out, nor waiting to take another's place."""
        return [life for life in self._lives if not life.spare and not life.child.leaving]

    @property
    def running(self) -> int:
        """Jobs under way in processes that take more of them."""
        return sum(life.child.running for life in self.lives)

    def resize(self, count: int) -> None:
        if count != self.wanted and not self._is_idle:
            self.wanted = count
            self.wake()

    @property
    def _is_idle(self) -> bool:
        """Other pools serve all the queues there are."""
        return self.hello is not None and not self.hello.queues

    def wake(self) -> None:
        self._changed.set()

    async def keep(self) -> None:
        """Until the supervisor stops, and nothing of the pool runs any more."""
        while not self._house.stopping.is_set():
            self._changed.clear()
            self._let_go()
            while self._too_few() and not self._restarts.pause:
                self._begin()
            await self._rest()
        while self._lives:
            await asyncio.wait(self._lives.values())

    async def replace(self, life: ChildLifecycle) -> bool:
        """A new process first, ready to work; then the old one drains. False: there is no new one, and the old one goes on."""
        async with self._one_at_a_time:
            if life not in self.lives:
                return True
            fresh = self._begin(spare=True)
            if not await fresh.ready_or_over(START_PATIENCE):
                fresh.child.leaving = True
                fresh.child.kill()
                if not self._house.stopping.is_set():
                    why = fresh.error or "it ended, or was not ready in time"
                    facts = {"child_pid": life.child.pid, "pool": self.name, "reason": str(why)}
                    log.error("worker process not replaced; the old one continues", extra=facts)
                return False
            fresh.spare = False
            life.drain()
            self.wake()
            return True

    # The number

    def _too_few(self) -> bool:
        if len(self.lives) >= self.wanted:
            return False
        # Those that still drain take up room, too; but fewer than the default there shall never be.
        return len(self.lives) < self.plan.default_count or len(self._lives) < self.plan.max_count

    def _let_go(self) -> None:
        """Of those that are too many, the least busy and the youngest."""
        too_many = len(self.lives) - self.wanted
        for life in sorted(self.lives, key=lambda life: (life.child.running, -life.child.started))[: max(0, too_many)]:
            life.drain()

    async def _rest(self) -> None:
        pause = self._restarts.pause
        with suppress(TimeoutError):
            async with asyncio.timeout(pause or None):
                await self._changed.wait()

    # One of them

    def _begin(self, *, spare: bool = False) -> ChildLifecycle:
        life = ChildLifecycle(self.plan.spec, self._house, spare=spare, ready=self._on_ready)
        task = self._lives[life] = asyncio.create_task(life.run())
        task.add_done_callback(lambda _: self._on_over(life))
        return life

    def _on_ready(self, hello: Hello) -> None:
        self.hello = hello
        self._told_ready(hello)
        if self._is_idle:
            log.warning(
                "pool has nothing to do, because other pools serve all queues: its processes end", extra={"pool": self.name}
            )
            self.wanted = 0
            self.wake()

    def _on_over(self, life: ChildLifecycle) -> None:
        del self._lives[life]
        self.wake()
        if life.spare:
            return  # whoever wanted it says what that means
        if life.error is not None and not self._house.stopping.is_set():
            self._on_error(life.error)
        self._restarts.ended(life)
        if self._restarts.hopeless and not any(other.proven for other in self.lives):
            self._house.fail(
                EXIT_HOPELESS,
                f"pool {self.name}: {self._restarts.young_deaths} processes in a row died within seconds of their start; "
                "see the log above for what they died of (workers.restart_limit)",
            )

    def _on_error(self, error: Exception) -> None:
        """At the first start there is nobody to wait for; later the others go on, and the next try may do better."""
        if self.hello is not None:
            log.error("worker process cannot start", extra={"pool": self.name, "reason": str(error)})
            return
        code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), EXIT_FAILED)
        self._house.fail(code, str(error))
