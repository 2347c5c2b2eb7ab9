"""Gives back the jobs of workers whose lease ran out, and jobs whose own lease did."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from tenure.leader.duties.duty import Outlets, Report
from tenure.leader.duties.parts import Parts
from tenure.leader.duties.requeue import Requeuing, announce
from tenure.pacing import boottime
from tenure.store import leases, workers
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.query import Pick

log = logging.getLogger("tenure")


class Contact:
    """For how long this process has been in unbroken contact with PostgreSQL."""

    def __init__(self, *, longest_silence: float = 6.0) -> None:
        """After `longest_silence` seconds without an answer it counts as broken."""
        self.longest_silence = longest_silence
        self._since = self._last = boottime()

    def touch(self) -> None:
        now = boottime()
        if now - self._last > self.longest_silence:
            self._since = now
        self._last = now

    def broke(self) -> None:
        self._since = self._last = boottime()

    @property
    def age(self) -> float:
        return boottime() - self._since

    @property
    def unbroken_for(self) -> float:
        """As `age`, but 0 while no answer has come for `longest_silence` seconds."""
        return 0.0 if boottime() - self._last > self.longest_silence else self.age


class Reaper:
    name = "reaper"
    hears = ()
    divisible = True
    batch = 500
    patience = 10.0
    """Seconds of unbroken contact before anyone is condemned. After an outage all leases have run out, and their holders
    are as eager to renew them as we are to look: they come first."""

    unknown_every = 30.0
    """Seconds between two looks for jobs that are held by a worker without a row."""

    def __init__(self, contact: Contact, outlets: Outlets | None = None, *, every: float = 5.0) -> None:
        """`every`: seconds between two looks at most. It looks sooner when a lease ends."""
        self._contact = contact
        self._outlets = outlets or Outlets()
        self.longest_rest = every
        self._next_unknown = 0.0
        self._requeuing = Requeuing(self._outlets)
        self._refused = RefusedRows("to requeue a job")

    async def run_once(self, link: Link, term: Term) -> Report:
        self._contact.touch()
        query = leases.condemn_expired(term, reap=self._contact.age >= self.patience)
        [(holds, condemned, waiting, next_end, overdue)] = await link.fetch(query)
        if not holds:
            return Report(holds=False)
        unknown = await self._condemn_unknown(link, term)
        # What holds up the one must not hold up the other.
        parts = Parts()
        returned = await parts.do("requeue", lambda: self._requeuing.give_back(link)) if waiting or unknown else 0
        expired = await parts.do("expire", lambda: self._expire(link, term)) if overdue else 0
        parts.raise_first()
        # What could not be requeued now (refused, or locked by another session) is overdue at the next look as well.
        soonest = 0.2 if expired or not overdue else 1.0
        rest = self.longest_rest if next_end is None else min(self.longest_rest, max(soonest, next_end))
        return Report(holds=True, touched=condemned + (returned or 0) + (expired or 0), rest=rest)

    async def _condemn_unknown(self, link: Link, term: Term) -> list[str]:
        if time.monotonic() < self._next_unknown:
            return []
        [(_holds, unknown)] = await link.fetch(leases.condemn_unknown(term))
        self._next_unknown = time.monotonic() + self.unknown_every
        if unknown:
            log.error("jobs were held by workers that do not exist: %s; they are requeued", ", ".join(unknown))
        return list(unknown)

    async def _expire(self, link: Link, term: Term) -> int:
        async def send(pick: Pick) -> tuple[Any, ...]:
            [answer] = await link.fetch(leases.expire_jobs(term, limit=self.batch, max_crashes=workers.MAX_CRASHES, pick=pick))
            if not pick.peek:
                announce(self._outlets, answer[2], json.loads(answer[3] or "[]"))
            return answer

        return sum(answer[0] + answer[1] for answer in await self._refused.run(send))
