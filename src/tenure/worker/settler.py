"""The one writer: outcomes go out in groups, at once when idle, together under load."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tenure.model.errors import StoreUnavailable
from tenure.pacing import FOREVER, Beat
from tenure.store import jobs
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.query import Query
from tenure.worker import settlements
from tenure.worker.settlements import Settlement

log = logging.getLogger("tenure")

LARGEST_GROUP = 1000


class Settler:
    """Keeps every settlement until PostgreSQL has answered for it.

    `lost(settlement)` is called for each run that turned out not to be ours any more, `settled(settlement)` for the others.
    """

    def __init__(self, link: Link, settled: Callable[[Settlement], None], lost: Callable[[Settlement], None]) -> None:
        self._link = link
        self._settled = settled
        self._lost = lost
        self._waiting: list[Settlement] = []
        self._in_flight: list[Settlement] = []
        self._unsure = False
        self.beat = Beat("settler", self._turn)

    @property
    def backlog(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    def add(self, settlement: Settlement) -> None:
        self._waiting.append(settlement)
        if len(self._waiting) == 1:
            self.beat.wake()

    async def flush(self) -> None:
        """Sends all there is, now. Raises `StoreUnavailable` and keeps what could not be sent."""
        while self.backlog:
            await self._turn()

    async def _turn(self) -> float:
        if not self._in_flight:
            self._in_flight, self._waiting = self._waiting[:LARGEST_GROUP], self._waiting[LARGEST_GROUP:]
        finishing = [s for s in self._in_flight if s.finishing]
        moving = [s for s in self._in_flight if not s.finishing]
        if finishing:
            await self._send(finishing, jobs.finish)
        if moving:
            await self._send(moving, jobs.move)
        return 0.0 if self._waiting else FOREVER

    async def _send(self, group: list[Settlement], statement: Callable[[str], Query]) -> None:
        try:
            rows = await self._link.fetch(statement(_array(group)))
        except StoreUnavailable:
            # The commit may have happened all the same: from now on a missing row may be our own doing.
            self._unsure = True
            raise
        except Refused as error:
            await self._isolate(group, statement, error)
            return
        written = {row[0] for row in rows}
        if len(written) < len(group) and self._unsure:
            written |= await self._written_before(group)
        self._unsure = False
        self._answer(group, written)

    async def _written_before(self, group: list[Settlement]) -> set[str]:
        """What an earlier, unanswered sending of this group did write. A move leaves no trace of its claim, but then the
        run is over either way."""
        moved = {s.run.job_id for s in group if not s.finishing}
        return moved | {row[0] for row in await self._link.fetch(jobs.find_settled(_array(group)))}

    def _answer(self, group: list[Settlement], written: set[str]) -> None:
        answered = set(map(id, group))
        self._in_flight = [s for s in self._in_flight if id(s) not in answered]
        for settlement in group:
            if settlement.run.job_id in written:
                self._settled(settlement)
            else:
                self._lost(settlement)

    async def _isolate(self, group: list[Settlement], statement: Callable[[str], Query], error: Refused) -> None:
        """PostgreSQL refuses a value in this group: halve it until the one row is found, and settle the others."""
        if len(group) > 1:
            middle = len(group) // 2
            await self._send(group[:middle], statement)
            await self._send(group[middle:], statement)
            return
        refused = group[0]
        log.error("the outcome of job %s was refused by PostgreSQL: %s", refused.run.job_id, error)
        failed = settlements.of_error(refused.run, ValueError(f"PostgreSQL refused the outcome: {error}"))
        self._in_flight = [failed if s is refused else s for s in self._in_flight]
        await self._send([failed], jobs.move)


def _array(group: list[Settlement]) -> str:
    return "[" + ",".join([s.text for s in group]) + "]"
