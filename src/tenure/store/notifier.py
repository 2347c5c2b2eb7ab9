"""Wakes listeners after a commit: at once when quiet, together when busy, and never at the cost of an enqueue."""

from __future__ import annotations

import asyncio
import json
import logging

from tenure.model.errors import StoreUnavailable
from tenure.periodic import FOREVER, PeriodicTask
from tenure.store import queues
from tenure.store.faults import Refused
from tenure.store.link import Link

log = logging.getLogger("tenure")

# A NOTIFY takes a database-wide lock at commit. So a process that says much says it ever more rarely, and one that
# speaks now and then is heard at once.
SHORTEST_GAP, LONGEST_GAP = 0.005, 0.05

LONGEST_NOTIFY = 2.0
"""Seconds after which a NOTIFY is given up: it waits for the commits of all other sessions that notify."""

LONGEST_WORD = 7999
"""In bytes: the limit of pg_notify."""


class Notifier:
    """Sends on a link that also runs other statements. What cannot be sent is dropped: listeners also poll."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._words: set[str] = set()
        self._gap = SHORTEST_GAP
        self.beat = PeriodicTask("notifier", self._turn)

    def tell(self, word: str) -> None:
        # One that PostgreSQL does not take would take the others of its statement with it.
        if word not in self._words and len(word.encode()) <= LONGEST_WORD:
            self._words.add(word)
            self.beat.wake()

    async def say(self, *words: str) -> bool:
        """Sends now. Returns whether that was possible; if not, listeners find out by polling."""
        try:
            await self._link.fetch(queues.notify(self._link.database.channel, json.dumps(words)), within=LONGEST_NOTIFY)
        except (StoreUnavailable, Refused) as error:
            log.debug("notifier: %s", error)
            return False
        return True

    async def flush(self) -> None:
        """Sends what is still waiting."""
        words, self._words = self._words, set()
        if words:
            await self.say(*words)

    async def _turn(self) -> float:
        words, self._words = self._words, set()
        if words:
            try:
                await self.say(*words)
            except asyncio.CancelledError:
                self._words |= words  # `flush` still sends them
                raise
            await asyncio.sleep(self._gap)
            self._gap = min(LONGEST_GAP, 2 * self._gap) if self._words else SHORTEST_GAP
        return FOREVER
