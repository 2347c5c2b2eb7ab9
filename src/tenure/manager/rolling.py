"""A rolling restart: every process is replaced by one with the code and the settings of now, and no job notices."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from tenure.manager.pool import Pool

log = logging.getLogger("tenure")


class Rolling:
    """One process at a time: the new one is ready before the old one drains. A new one that cannot start ends it, and the
    old ones go on."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Asked once more while it is under way, it begins anew after that: the code has changed again."""
        self._asked.set()

    async def asked(self) -> None:
        await self._asked.wait()
        self._asked.clear()

    async def roll(self) -> bool:
        """Whether all were replaced."""
        began = time.monotonic()
        for pool in self._pools:
            for life in [life for life in pool.lives if life.child.started < began]:
                if not await pool.replace(life):
                    return False
                # A neighbour that still drains takes memory; but a long job must not hold up the restart.
                await life.over(life.child.hello.grace if life.child.hello else 0.0)
        return True
