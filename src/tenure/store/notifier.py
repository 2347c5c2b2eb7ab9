"""Wakes listeners after a commit: at once when quiet, together when busy, and never at the cost of an enqueue."""

from __future__ import annotations

import asyncio
import logging

from tenure.model.errors import StoreUnavailable
from tenure.model.wakeup import LONGEST_PAYLOAD, Wakeup
from tenure.periodic import FOREVER, PeriodicTask
from tenure.store import queues
from tenure.store.faults import Refused
from tenure.store.link import Link

log = logging.getLogger("tenure")

# A NOTIFY takes a database-wide lock at commit. So a process sends at most 200 a second, and fewer when it has very many: then
# the workers are busy, and find the jobs without them.
SHORTEST_GAP, LONGEST_GAP = 0.005, 0.05

MANY = 20
"""Notifications during one gap, from which on the next gap is longer."""

LONGEST_NOTIFY = 2.0
"""Seconds after which a NOTIFY is given up: it waits for the commits of all other sessions that notify."""


class Notifier:
    """Sends on a link that also runs other statements. What cannot be sent is dropped: listeners also poll."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._pending: set[Wakeup] = set()
        self._gap = SHORTEST_GAP
        self._calls = 0
        self.task = PeriodicTask("notifier", self._turn)

    def notify(self, wakeup: Wakeup) -> None:
        self._calls += 1
        # If PostgreSQL refused one of them, the others of its statement would be lost as well.
        if wakeup not in self._pending and len(wakeup.payload().encode()) <= LONGEST_PAYLOAD:
            self._pending.add(wakeup)
            self.task.wake()

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
            self._calls = 0
            await asyncio.sleep(self._gap)
            self._gap = next_gap(self._gap, self._calls)
        return FOREVER


def next_gap(gap: float, calls: int) -> float:
    """Seconds until the next NOTIFY, after a gap with this many notifications."""
    return min(LONGEST_GAP, 2 * gap) if calls >= MANY else SHORTEST_GAP
