"""What a process hears and says: one LISTEN connection and one for NOTIFY, shared by all who wait in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tenure.pacing import Beat
from tenure.store.listener import Listener
from tenure.store.notifier import Notifier
from tenure.store.place import Place

DUE = "due"
"""The word that a job was scheduled: the stager looks when the next one is due."""


def jobs_in(queue: str) -> str:
    """The word that a queue has new work."""
    return f"jobs {queue}"


class Wakeups:
    """`heard(word)` is called with each word, and with "" when words may have been missed."""

    def __init__(self, place: Place, heard: Callable[[str], None]) -> None:
        self._notifier = Notifier(place)
        self._listener = Listener(place, heard, self._notifier.say)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def deaf(self) -> bool:
        return self._listener.deaf

    def tell(self, word: str) -> None:
        self._notifier.tell(word)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._notifier.beat.run()),
            asyncio.create_task(Beat("listener", self._listener.turn).run()),
        ]

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self._notifier.close()
