"""The one writer: outcomes go out in groups, at once when idle, together under load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tenure.model.errors import StoreUnavailable
from tenure.pacing import FOREVER, Beat
from tenure.store import jobs
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.link import Link
from tenure.worker import settlements
from tenure.worker.runs import Run
from tenure.worker.settlements import Settlement

log = logging.getLogger("tenure")

LARGEST_GROUP = 1000

PARKED = 30.0
"""Seconds until an outcome of which PostgreSQL takes nothing at all is offered again."""


class Settler:
    """Keeps every settlement until PostgreSQL has answered for it.

    `lost(settlement)` is called for each run that turned out not to be ours any more, `settled(settlement, watched)` for the
    others.
    """

    def __init__(
        self,
        link: Link,
        settled: Callable[[Settlement, bool], None],
        lost: Callable[[Settlement], None],
        before: Callable[[list[Run]], Awaitable[None]],
    ) -> None:
        """`before(runs)` writes what these runs have said: once they are settled, it would be refused."""
        self._link = link
        self._before = before
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
        await self._before([s.run for s in self._in_flight if s.run.notes is not None])
        finishing = [s for s in self._in_flight if s.finishing]
        moving = [s for s in self._in_flight if not s.finishing]
        if finishing:
            await send_or_halve(finishing, self._send, self._refused)
        if moving:
            await send_or_halve(moving, self._send, self._refused)
        self._unsure = False
        return 0.0 if self._waiting else FOREVER

    async def _send(self, group: list[Settlement]) -> None:
        statement = jobs.finish if group[0].finishing else jobs.move
        try:
            written = dict(await self._link.fetch(statement(_array(group))))
            missing = [s for s in group if s.run.job_id not in written]
            if missing:
                # Settling goes by the row's place, which a sign of life that was still under way has changed meanwhile.
                written |= dict(await self._link.fetch(statement(_array(missing))))
                missing = [s for s in missing if s.run.job_id not in written]
        except StoreUnavailable:
            # The commit may have happened all the same: from now on a missing row may be our own doing.
            self._unsure = True
            raise
        before = await self._written_before(missing) if self._in_question(missing) else {}
        answered = set(map(id, group))
        self._in_flight = [s for s in self._in_flight if id(s) not in answered]
        for settlement in group:
            self._answer(settlement, written, before)

    def _in_question(self, missing: list[Settlement]) -> bool:
        return bool(missing) and (self._unsure or any(s.instead_of is not None for s in missing))

    async def _written_before(self, missing: list[Settlement]) -> dict[str, Settlement]:
        """What was settled by an earlier, unanswered sending, or by the handler's own transaction. A move leaves no trace of
        its claim, but then the run is over either way."""
        moved = {s.run.job_id: s for s in missing if self._unsure and not s.finishing}
        finished = {row[0] for row in await self._link.fetch(jobs.find_settled(_array(missing)))}
        return moved | {s.run.job_id: s.instead_of or s for s in missing if s.run.job_id in finished}

    def _answer(self, settlement: Settlement, written: dict[str, bool], before: dict[str, Settlement]) -> None:
        job_id = settlement.run.job_id
        if job_id in written:
            self._settled(settlement, written[job_id])
        elif job_id in before:
            self._settled(before[job_id], True)  # whether somebody watches is not known
        else:
            self._lost(settlement)

    async def _refused(self, settlement: Settlement, error: Refused) -> None:
        """PostgreSQL will never take this outcome: the job fails instead, or, if even that is refused, waits."""
        log.error("the outcome of job %s was refused by PostgreSQL: %s", settlement.run.job_id, error)
        failed = settlements.of_error(settlement.run, ValueError(f"PostgreSQL refused the outcome: {error}"))
        self._in_flight = [failed if s is settlement else s for s in self._in_flight]
        try:
            await self._send([failed])
        except Refused:
            self._in_flight.remove(failed)
            # Nothing can be written about this job. It stays ours, and others are not held up by it.
            asyncio.get_running_loop().call_later(PARKED, self.add, failed)


def _array(group: list[Settlement]) -> str:
    return "[" + ",".join([s.text for s in group]) + "]"
