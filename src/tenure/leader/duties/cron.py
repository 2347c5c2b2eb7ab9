"""Records the planned times of schedules, and hands in their jobs."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tenure.leader.duties.duty import Report
from tenure.model.errors import ConfigError
from tenure.model.schedules import Schedule
from tenure.model.ticks import decide, to_json
from tenure.store import schedules
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.leases import Term
from tenure.store.link import Link

log = logging.getLogger("tenure")

Move = dict[str, Any]


class TermOver(Exception):  # noqa: N818 - reads as the fact it states
    """Another may lead by now. Nothing was written."""


class Cron:
    """What is due is read, decided here, and written in one statement that names the version it was read in: whoever was
    asleep meanwhile, is not the leader any more, or repeats what was done already, writes nothing."""

    name = "cron"
    hears = (schedules.CHANGED,)
    divisible = False
    batch = 200
    longest_rest = 15.0
    """Who changes a schedule says so."""
    queued_rest = 1.0
    """While ticks wait for an earlier job to end, which nobody tells."""
    clean_every = 600.0
    clean_batch = 2000

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._clean_at = 0.0
        self._broken: set[tuple[str, str]] = set()

    async def run_once(self, link: Link, term: Term, *, now: datetime | None = None) -> Report:
        [(holds, clock, next_due, queued, found)] = await link.fetch(schedules.find_due(term, limit=self.batch, now=now))
        if not holds:
            return Report(holds=False)
        moves = [move for given in json.loads(found) if (move := self._move(given, clock)) is not None]
        touched = 0
        try:
            if moves:
                touched += await self._record(link, term, moves, now)
            if queued:
                touched += await self._release(link, term, now)
            await self._clean(link, term, now)
        except TermOver:
            return Report(holds=False)
        return Report(holds=True, touched=touched, rest=self._rest(moves, next_due, queued=queued))

    def _rest(self, moves: list[Move], next_due: float | None, *, queued: bool) -> float:
        if moves:  # each of them has another time now, which may have come already
            return 0.0
        longest = self.queued_rest if queued else self.longest_rest
        return longest if next_due is None else min(longest, max(0.0, next_due))

    def _move(self, given: Mapping[str, Any], now: datetime) -> Move | None:
        """What to write of this schedule. One that cannot be worked out here must not hold up the others."""
        if (given["name"], given["version"]) in self._broken:
            return None
        try:
            schedule = _schedule(given)
            decision = decide(schedule, datetime.fromisoformat(given["since"]), now)
        except (ConfigError, ArithmeticError, ValueError) as error:
            self._complain(given, error)
            return None
        return {"name": given["name"], "version": given["version"], **to_json(schedule, decision)}

    async def _record(self, link: Link, term: Term, moves: list[Move], now: datetime | None) -> int:
        """How many jobs were handed in."""
        total = 0

        async def send(group: list[Move]) -> None:
            nonlocal total
            query = schedules.record_ticks(term, group, channel=link.place.channel, now=now)
            [(holds, _moved, handed_in, _told)] = await link.fetch(query)
            _insist(holds)
            total += handed_in

        async def refused(move: Move, error: Refused) -> None:
            self._complain(move, error)

        await send_or_halve(moves, send, refused)
        return total

    async def _release(self, link: Link, term: Term, now: datetime | None) -> int:
        query = schedules.release_ticks(term, limit=self.batch, channel=link.place.channel, now=now)
        [(holds, handed_in, *_)] = await link.fetch(query)
        _insist(holds)
        return int(handed_in)

    async def _clean(self, link: Link, term: Term, now: datetime | None) -> None:
        if time.monotonic() < self._clean_at:
            return
        query = schedules.clean_ticks(term, limit=self.clean_batch, keep=self._keep, now=now)
        [(holds, removed)] = await link.fetch(query)
        _insist(holds)
        if removed < self.clean_batch:
            self._clean_at = time.monotonic() + self.clean_every

    def _complain(self, given: Mapping[str, Any], error: Exception) -> None:
        """Once: this version of it is left alone from now on."""
        self._broken.add((given["name"], given["version"]))
        log.error("schedule %r cannot be carried out: %s; change it, or delete it", given["name"], error)


def _insist(holds: bool) -> None:
    if not holds:
        raise TermOver


def _schedule(given: Mapping[str, Any]) -> Schedule:
    """As far as its times go: what its jobs are like is known to the statement."""
    return Schedule(
        name=given["name"],
        kind=given["kind"],
        cron=given["cron"],
        every=None if given["every"] is None else timedelta(seconds=given["every"]),
        timezone=given["timezone"],
        overlap=given["overlap"],
        catch_up=given["catch_up"],
        catch_up_limit=given["catch_up_limit"],
        jitter=timedelta(seconds=given["jitter"]),
    )
