"""Gives back the jobs of workers whose lease ran out, and jobs whose own lease did."""

from __future__ import annotations

import logging
import time

from tenure.leader.duties.duty import Report
from tenure.leader.terms import boottime
from tenure.store import leases, workers
from tenure.store.leases import Term
from tenure.store.link import Link

log = logging.getLogger("tenure")


class Contact:
    """For how long this process has been in unbroken contact with PostgreSQL."""

    longest_silence = 6.0

    def __init__(self) -> None:
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


class Reaper:
    name = "reaper"
    hears = ()
    divisible = True
    batch = 500
    longest_rest = 5.0
    patience = 10.0
    """Seconds of unbroken contact before anyone is condemned. After an outage all leases have run out, and their holders
    are as eager to renew them as we are to look: they come first."""

    unknown_every = 30.0
    """Seconds between two looks for jobs that are held by a worker without a row."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact
        self._next_unknown = 0.0

    async def run_once(self, link: Link, term: Term) -> Report:
        self._contact.touch()
        query = leases.condemn_expired(term, reap=self._contact.age >= self.patience)
        [(holds, condemned, waiting, next_end, overdue)] = await link.fetch(query)
        if not holds:
            return Report(holds=False)
        unknown = await self._condemn_unknown(link, term)
        returned = await give_back(link, None) if waiting or unknown else 0
        if overdue:
            returned += await self._expire(link, term)
        rest = self.longest_rest if next_end is None else min(self.longest_rest, max(0.2, next_end))
        return Report(holds=True, touched=condemned + returned, rest=rest)

    async def _condemn_unknown(self, link: Link, term: Term) -> list[str]:
        if time.monotonic() < self._next_unknown:
            return []
        [(_holds, unknown)] = await link.fetch(leases.condemn_unknown(term))
        self._next_unknown = time.monotonic() + self.unknown_every
        if unknown:
            log.error("jobs were held by workers that do not exist: %s; they are requeued", ", ".join(unknown))
        return list(unknown)

    async def _expire(self, link: Link, term: Term) -> int:
        query = leases.expire_jobs(term, limit=self.batch, max_crashes=workers.MAX_CRASHES, channel=link.place.channel)
        [(returned, quarantined, _told)] = await link.fetch(query)
        if returned or quarantined:
            log.warning("%d jobs let their own lease run out: %d set aside", returned + quarantined, quarantined)
        return int(returned + quarantined)


async def give_back(link: Link, worker_id: str | None) -> int:
    """Returns what condemned workers hold, page by page. Done by the reaper for all, by a supervisor for its own."""
    total = 0
    more = True
    while more:
        [(returned, quarantined, more, _told)] = await link.fetch(workers.return_jobs(worker_id, channel=link.place.channel))
        total += returned + quarantined
        if returned or quarantined:
            log.warning("a worker died: %d of its jobs come back, %d are set aside as dead letters", returned, quarantined)
    return total
