"""Wakes listeners after a commit: at once when quiet, together when busy, and never at the cost of an enqueue."""

from __future__ import annotations

import asyncio
import logging

from tenure.model.errors import StoreUnavailable
from tenure.periodic import FOREVER, PeriodicTask
from tenure.store import queues
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.wakeup import LONGEST_PAYLOAD, Wakeup

log = logging.getLogger("tenure")

# A NOTIFY takes a database-wide lock at commit. So a process with many notifications sends them less and less often, and one
# with few sends each at once.
SHORTEST_GAP, LONGEST_GAP = 0.005, 0.05

LONGEST_NOTIFY = 2.0
"""Seconds after which a NOTIFY is given up: it waits for the commits of all other sessions that notify."""


class Notifier:
    """Sends on a link that also runs other statements. What cannot be sent is dropped: listeners also poll."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._pending: set[Wakeup] = set()
        self._gap = SHORTEST_GAP
        self.beat = PeriodicTask("notifier", self._turn)

    def notify(self, wakeup: Wakeup) -> None:
        # If PostgreSQL refused one of them, the others of its statement would be lost as well.
        if wakeup not in self._pending and len(wakeup.payload().encode()) <= LONGEST_PAYLOAD:
            self._pending.add(wakeup)
            self.beat.wake()

    async def send(self, *wakeups: Wakeup) -> bool:
        """Sends now. Returns whether that was possible; if not, listeners find out by polling."""
        try:
            await self._link.fetch(queues.notify(self._link.database.channel, wakeups), within=LONGEST_NOTIFY)
        except (StoreUnavailable, Refused) as error:
            log.debug("notifier: %s", error)
            return False
        return True

    async def flush(self) -> None:
        """Sends what is still waiting."""
        wakeups, self._pending = self._pending, set()
        if wakeups:
            await self.send(*wakeups)

    async def _turn(self) -> float:
        wakeups, self._pending = self._pending, set()
        if wakeups:
            try:
                await self.send(*wakeups)
            except asyncio.CancelledError:
                self._pending |= wakeups  # `flush` still sends them
                raise
            await asyncio.sleep(self._gap)
            self._gap = min(LONGEST_GAP, 2 * self._gap) if self._pending else SHORTEST_GAP
        return FOREVER
