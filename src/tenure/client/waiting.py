"""Waiting for changes of jobs: woken by notifications of their workers, and by polling where those do not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tenure.store.wakeups import Wakeups

FIRST_LOOK, LONGEST_LOOK = 0.01, 5.0
"""Seconds between two polls. Short at first, because no notification is sent for a job that was already being settled when the
wait began. Then longer and longer, for clients that receive no notifications."""


class News:
    """Whether a notification about one job has arrived."""

    def __init__(self) -> None:
        self._said = asyncio.Event()
        self._patience = FIRST_LOOK

    def say(self) -> None:
        self._said.set()

    async def wait(self, longest: float) -> None:
        """Until a notification arrives or it is time to poll; at most `longest` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(self._patience, longest))):
                await self._said.wait()
        self._patience = min(LONGEST_LOOK, 2 * self._patience)
        self._said.clear()


class Waiting:
    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._waiters: dict[str, set[News]] = {}
        self._end = wakeups.subscribe(self._hear)

    @asynccontextmanager
    async def on(self, job_id: str) -> AsyncIterator[News]:
        self._wakeups.listen()
        news = News()
        self._waiters.setdefault(job_id, set()).add(news)
        try:
            yield news
        finally:
            self._waiters[job_id].discard(news)
            if not self._waiters[job_id]:
                del self._waiters[job_id]

    def _hear(self, word: str) -> None:
        verb, _, job_id = word.partition(" ")
        if not word:
            for waiters in self._waiters.values():
                for news in waiters:
                    news.say()
        else:
            # Notifications about a job are found by its id, others by the whole text.
            for news in self._waiters.get(job_id if verb in ("done", "moved") else word, ()):
                news.say()

    def close(self) -> None:
        self._end()
