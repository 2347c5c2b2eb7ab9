"""Waiting for news of jobs: woken by their workers where words can be heard, by looking again where not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tenure.store.wakeups import Wakeups

FIRST_LOOK, LONGEST_LOOK = 0.01, 5.0
"""Seconds between two looks. Few at first: a job that was being settled just when we came is not announced to us. Then ever
more, for those who cannot hear."""


class News:
    """Whether something was said about one job."""

    def __init__(self) -> None:
        self._said = asyncio.Event()
        self._patience = FIRST_LOOK

    def say(self) -> None:
        self._said.set()

    async def wait(self, longest: float) -> None:
        """Until something is said or it is time to look again; at most `longest` seconds."""
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
            # Of a job by its id; anything else by the whole word.
            for news in self._waiters.get(job_id if verb in ("done", "moved") else word, ()):
                news.say()

    def close(self) -> None:
        self._end()
