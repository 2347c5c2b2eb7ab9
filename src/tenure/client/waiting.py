"""Waiting for changes of jobs: woken by notifications of their workers, and by polling where those do not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tenure.model.wakeup import Wakeup
from tenure.store.wakeups import Wakeups

FIRST_LOOK, LONGEST_LOOK = 0.01, 5.0
"""Seconds between two polls. Short at first, because no notification is sent for a job that was already being settled when the
wait began. Then longer and longer, for clients that receive no notifications."""


class News:
    """Whether a notification has arrived."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._patience = FIRST_LOOK

    def arrive(self) -> None:
        self._arrived.set()

    async def wait(self, longest: float) -> None:
        """Until a notification arrives or it is time to poll; at most `longest` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(self._patience, longest))):
                await self._arrived.wait()
        self._patience = min(LONGEST_LOOK, 2 * self._patience)
        self._arrived.clear()


class Waiting:
    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._waiters: dict[Wakeup, set[News]] = {}
        self._end = wakeups.subscribe(self._on_wakeup)

    @asynccontextmanager
    async def on(self, *wakeups: Wakeup) -> AsyncIterator[News]:
        """Waits for any of these."""
        self._wakeups.listen()
        news = News()
        for wakeup in wakeups:
            self._waiters.setdefault(wakeup, set()).add(news)
        try:
            yield news
        finally:
            for wakeup in wakeups:
                self._waiters[wakeup].discard(news)
                if not self._waiters[wakeup]:
                    del self._waiters[wakeup]

    def _on_wakeup(self, wakeup: Wakeup) -> None:
        found = self._waiters.values() if wakeup == Wakeup.missed() else [self._waiters.get(wakeup, set())]
        for waiters in found:
            for news in waiters:
                news.arrive()

    def close(self) -> None:
        self._end()
