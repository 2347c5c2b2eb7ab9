"""Jobs that were in two crashes (suspects) run one at a time in their own process, which exists only while there are any."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenure.manager.child_lifecycle import EARLY_CRASH, ChildLifecycle
from tenure.manager.pool import Pool
from tenure.manager.services import SupervisorServices


class IsolationProcess:
    def __init__(self, pools: Sequence[Pool], services: SupervisorServices) -> None:
        self._pools = pools
        self._services = services
        self._lifecycle: ChildLifecycle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def queues(self) -> list[str]:
        """The queues of all pools: one such process serves them all."""
        return _union(pool.hello.queues for pool in self._pools if pool.hello)

    def update(self, *, suspects_waiting: bool) -> None:
        """Starts the process when suspects wait, and drains it when there are none."""
        if self._task is not None and self._task.done():
            self._lifecycle = self._task = None
        lifecycle = self._lifecycle
        if suspects_waiting and lifecycle is None and not self._services.stopping.is_set():
            self._start()
        elif not suspects_waiting and lifecycle is not None and not lifecycle.child.running and lifecycle.child.age > EARLY_CRASH:
            lifecycle.drain()

    def drain(self) -> None:
        """The next suspect starts a new process, with the code of that time."""
        if self._lifecycle is not None:
            self._lifecycle.drain()

    async def wait_ended(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self) -> None:
        capabilities = _union(pool.hello.capabilities for pool in self._pools if pool.hello)
        spec = self._pools[0].plan.spec
        spec = replace(spec, jobs="suspects", concurrency=1, queues=self.queues, capabilities=capabilities)
        self._lifecycle = ChildLifecycle(spec, self._services, ready=lambda _: None)
        self._task = asyncio.create_task(self._lifecycle.run())


def _union(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(item for items in lists for item in items))
