"""A rolling restart: replaces every process by one with the current code and settings, without interrupting jobs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from tenure.manager.pool import Pool

log = logging.getLogger("tenure")


class Rolling:
    """One process at a time: the new one is ready before the old one drains. If a new one cannot start, the restart ends and
    the remaining old ones continue."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._requested = asyncio.Event()

    def request(self) -> None:
        """A request during a restart starts another one after it: the code has changed again."""
        self._requested.set()

    async def wait_requested(self) -> None:
        await self._requested.wait()
        self._requested.clear()

    async def roll(self) -> bool:
        """Whether all processes were replaced."""
        began = time.monotonic()
        for pool in self._pools:
            for lifecycle in [lifecycle for lifecycle in pool.active if lifecycle.child.started < began]:
                if not await pool.replace(lifecycle):
                    return False
                # A process that still drains takes memory; but a long job must not delay the restart.
                await lifecycle.wait_ended(lifecycle.child.hello.grace if lifecycle.child.hello else 0.0)
        return True
