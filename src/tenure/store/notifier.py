"""Wakes listeners after a commit: at once when quiet, together when busy, and never at the cost of an enqueue."""

from __future__ import annotations

import asyncio
import json
import logging

from tenure.model.errors import StoreUnavailable
from tenure.pacing import FOREVER, Beat
from tenure.store import jobs
from tenure.store.link import Link
from tenure.store.place import Place

log = logging.getLogger("tenure")

# A NOTIFY takes a database-wide lock at commit. So a process that says much says it ever more rarely, and one that
# speaks now and then is heard at once.
SHORTEST_GAP, LONGEST_GAP = 0.005, 0.05


class Notifier:
    """Own connection, own beat. A word that cannot be sent is dropped: listeners also poll."""

    def __init__(self, place: Place) -> None:
        self._link = Link(place, "notify", durable=False)
        self._channel = place.channel
        self._words: set[str] = set()
        self._gap = SHORTEST_GAP
        self.beat = Beat("notifier", self._turn)

    def tell(self, word: str) -> None:
        if word not in self._words:
            self._words.add(word)
            self.beat.wake()

    async def say(self, *words: str) -> None:
        """Sends now. A failure is nobody's loss but time."""
        try:
            await self._link.fetch(jobs.notify(self._channel, json.dumps(words)))
        except StoreUnavailable as error:
            log.debug("notifier: %s", error)

    async def close(self) -> None:
        if self._words:
            await self.say(*self._words)
        await self._link.close()

    async def _turn(self) -> float:
        words, self._words = self._words, set()
        if words:
            try:
                await self.say(*words)
            except asyncio.CancelledError:
                self._words |= words  # `close` still says them
                raise
            await asyncio.sleep(self._gap)
            self._gap = min(LONGEST_GAP, 2 * self._gap) if self._words else SHORTEST_GAP
        return FOREVER
