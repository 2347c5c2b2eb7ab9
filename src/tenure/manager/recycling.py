"""Replaces processes that are old, have run many jobs or use too much memory, to bound the effect of leaks."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from tenure.manager.pool import Pool
from tenure.manager.process import ChildProcess

log = logging.getLogger("tenure")

CHECK_EVERY = 1.0
AFTER_FAILURE = 30.0
"""Seconds before a replacement that could not start is tried again."""


def reason_to_recycle(child: ChildProcess) -> str | None:
    """None: the process is kept."""
    hello = child.hello
    if hello is None:
        return None
    if 0 < hello.recycle_after_jobs <= child.done:
        return f"it has run {child.done} jobs"
    if 0 < hello.recycle_after <= child.age:
        return f"it is {child.age:.0f} s old"
    if 0 < hello.recycle_above_mb < child.memory:
        return f"it uses {child.memory:.0f} MB"
    return None


class Recycling:
    """One process of a pool at a time. The new one is ready before the old one drains."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._not_before: dict[str, float] = {}

    async def turn(self) -> float:
        for pool in self._pools:
            if time.monotonic() >= self._not_before.get(pool.name, 0.0):
                await self._replace_one(pool)
        return CHECK_EVERY

    async def _replace_one(self, pool: Pool) -> None:
        for lifecycle in pool.active:
            why = reason_to_recycle(lifecycle.child) if lifecycle.is_ready else None
            if why is not None:
                facts = {"child_pid": lifecycle.child.pid, "pool": pool.name, "reason": why}
                log.info("worker process replaced", extra=facts)
                if not await pool.replace(lifecycle):
                    self._not_before[pool.name] = time.monotonic() + AFTER_FAILURE
                return
