"""Jobs that were in two crashes run one at a time in a process of their own, which goes when there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenure.manager.child_lifecycle import QUICK_DEATH, ChildLifecycle
from tenure.manager.pool import Pool
from tenure.manager.services import SupervisorServices


class IsolatedJob:
    def __init__(self, pools: Sequence[Pool], house: SupervisorServices) -> None:
        self._pools = pools
        self._house = house
        self._life: ChildLifecycle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def queues(self) -> list[str]:
        """Of all pools: one such process serves them all."""
        return _united(pool.hello.queues for pool in self._pools if pool.hello)

    def mind(self, *, waiting: bool) -> None:
        if self._task is not None and self._task.done():
            self._life = self._task = None
        if waiting and self._life is None and not self._house.stopping.is_set():
            self._begin()
        elif not waiting and self._life is not None and self._life.child.running == 0 and self._life.child.age > QUICK_DEATH:
            self._life.drain()

    def drain(self) -> None:
        """The next suspect finds a new one, with the code of then."""
        if self._life is not None:
            self._life.drain()

    async def over(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _begin(self) -> None:
        capabilities = _united(pool.hello.capabilities for pool in self._pools if pool.hello)
        spec = self._pools[0].plan.spec
        spec = replace(spec, jobs="suspects", concurrency=1, queues=self.queues, capabilities=capabilities)
        self._life = ChildLifecycle(spec, self._house, ready=lambda _: None)
        self._task = asyncio.create_task(self._life.run())


def _united(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(item for items in lists for item in items))
