"""Connections for the rounds of duties: one while rounds follow each other, more while a round is blocked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.store.duty_link import DutyLink
from tenure.store.target import DatabaseTarget

PATIENCE = 2.0
"""Seconds. A round that has its connection for longer counts as blocked, and the others no longer wait for it."""

LONGEST_WAIT = 1.0
"""Seconds that a round waits for the connection in all. On a busy server the rounds of several duties follow each other without
a pause, and each of them may take almost `PATIENCE`."""


class DutyLinks:
    """A blocked round (for instance by a locked table) keeps its connection and does not delay the other rounds for long."""

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
        """Closes idle links. Links in use are closed when their rounds end, except one. The object stays usable."""
        while not self._idle.empty():
            await self._idle.get_nowait().close()
        self._idle.put_nowait(DutyLink(self._database))

    async def _taken(self) -> DutyLink:
        """An idle link: rounds that follow each other share one. A new one if all others are blocked, or it takes too long."""
        latest = time.monotonic() + LONGEST_WAIT
        while self._idle.empty():
            blocked = max(self._taken_at.values(), default=0.0) + PATIENCE
            left = min(latest, blocked) - time.monotonic()
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
