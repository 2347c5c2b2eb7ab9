"""Connections for the rounds of duties: one while rounds come one after the other, more while a round is held up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.store.duty_link import DutyLink
from tenure.store.target import DatabaseTarget

PATIENCE = 2.0
"""Seconds after which a round that has a connection is held up: then the others do not wait for it any longer."""


class DutyLinks:
    """A round that is held up, by a locked table for instance, keeps its connection and delays no other round for long."""

    def __init__(self, database: DatabaseTarget) -> None:
        self._database = database
        self._idle: asyncio.Queue[DutyLink] = asyncio.Queue()
        self._idle.put_nowait(DutyLink(database))
        self._taken_at: dict[DutyLink, float] = {}

    @asynccontextmanager
    async def take(self) -> AsyncIterator[DutyLink]:
        link = await self._taken()
        self._taken_at[link] = time.monotonic()
        try:
            yield link
        finally:
            del self._taken_at[link]
            await self._give(link)

    async def close(self) -> None:
        """Links in use are closed when their rounds end, but for one. May be used again."""
        while not self._idle.empty():
            await self._idle.get_nowait().close()
        self._idle.put_nowait(DutyLink(self._database))

    async def _taken(self) -> DutyLink:
        """An idle one. A new one only when every other is held up: rounds that merely come one after the other share one."""
        while self._idle.empty():
            left = max(self._taken_at.values(), default=0.0) + PATIENCE - time.monotonic()
            if left <= 0:
                return DutyLink(self._database)
            try:
                async with asyncio.timeout(left):
                    return await self._idle.get()
            except TimeoutError:
                continue
        return self._idle.get_nowait()

    async def _give(self, link: DutyLink) -> None:
        if self._idle.empty():
            self._idle.put_nowait(link)
        else:
            await link.close()
