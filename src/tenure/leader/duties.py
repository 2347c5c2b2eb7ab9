"""The duties: each does one round when told, and says when it wants the next."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Protocol

from tenure.store import control, leases, workers
from tenure.store.leases import Term
from tenure.store.link import Link

log = logging.getLogger("tenure")


@dataclass(frozen=True, slots=True)
class Report:
    """What a round came to. Without the term nothing was written."""

    holds: bool
    touched: int = 0
    rest: float = 0.0


class Duty(Protocol):
    name: str
    ttl: float

    async def run_once(self, link: Link, term: Term) -> Report: ...


class Stager:
    """Promotes scheduled and retried jobs when they are due."""

    name = "stager"
    ttl = 10.0
    batch = 1000
    longest_rest = 2.5

    async def run_once(self, link: Link, term: Term) -> Report:
        query = leases.promote(term, limit=self.batch, channel=link.place.channel)
        [(holds, promoted, _told, next_due)] = await link.fetch(query)
        if promoted == self.batch:
            return Report(holds, promoted, 0.0)
        return Report(holds, promoted, min(self.longest_rest, max(0.0, next_due or self.longest_rest)))


class Contact:
    """For how long this process has been in unbroken contact with PostgreSQL."""

    longest_silence = 6.0

    def __init__(self) -> None:
        self._since = self._last = _boottime()

    def touch(self) -> None:
        now = _boottime()
        if now - self._last > self.longest_silence:
            self._since = now
        self._last = now

    def broke(self) -> None:
        self._since = self._last = _boottime()

    @property
    def age(self) -> float:
        return _boottime() - self._since


def _boottime() -> float:
    """Goes on while the machine is suspended, where the monotonic clock stops."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Reaper:
    """Gives back the jobs of workers whose lease ran out, and jobs whose own lease did."""

    name = "reaper"
    ttl = 10.0
    batch = 500
    longest_rest = 5.0
    patience = 10.0
    """Seconds of unbroken contact before anyone is condemned. After an outage all leases have run out, and their holders
    are as eager to renew them as we are to look: they come first."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    async def run_once(self, link: Link, term: Term) -> Report:
        self._contact.touch()
        query = leases.condemn_expired(term, reap=self._contact.age >= self.patience)
        [(holds, condemned, waiting, next_end, overdue)] = await link.fetch(query)
        if not holds:
            return Report(holds=False)
        returned = await give_back(link, None) if waiting else 0
        if overdue:
            returned += await self._expire(link, term)
        rest = self.longest_rest if next_end is None else min(self.longest_rest, max(0.2, next_end))
        return Report(holds=True, touched=condemned + returned, rest=rest)

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


class Rollup:
    """Adds the counts of settled jobs to those of their hour."""

    name = "rollup"
    ttl = 60.0
    every = 15.0
    batch = 5000

    async def run_once(self, link: Link, term: Term) -> Report:
        [(holds, merged)] = await link.fetch(control.merge_tallies(term, limit=self.batch))
        return Report(holds, merged, 0.0 if merged == self.batch else self.every)


class Cleaner:
    """Makes the partitions of history ahead of time, drops the old ones, and removes what only they were kept for."""

    name = "cleaner"
    ttl = 3600.0
    every = 1200.0
    days_ahead = 7
    batch = 2000
    keep_counts = 90 * 86400.0

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._keys_after: tuple[str, str] | None = None

    async def run_once(self, link: Link, term: Term) -> Report:
        rows = await link.fetch(leases.keep_history(term, days_ahead=self.days_ahead, keep=self._keep))
        if not rows:
            return Report(holds=False)
        [(made, dropped)] = rows
        if made or dropped:
            log.info("history: %d partitions made, %d dropped", made, dropped)
        removed = [await self._clean_keys(link, term), await self._clean_traces(link, term), await self._clean_counts(link, term)]
        if None in removed:
            return Report(holds=False)
        most = max(count or 0 for count in removed)
        return Report(holds=True, touched=made + dropped + most, rest=0.0 if most >= self.batch else self.every)

    async def _clean_keys(self, link: Link, term: Term) -> int | None:
        query = control.clean_keys(term, limit=self.batch, after=self._keys_after)
        [(holds, expired, freed, kind, key)] = await link.fetch(query)
        self._keys_after = None if kind is None else (kind, key)
        # There are more to be looked at, even if few of these could go.
        return None if not holds else self.batch if self._keys_after else max(expired, freed)

    async def _clean_traces(self, link: Link, term: Term) -> int | None:
        [(holds, *removed)] = await link.fetch(control.clean_traces(term, limit=self.batch, keep=self._keep))
        return max(removed) if holds else None

    async def _clean_counts(self, link: Link, term: Term) -> int | None:
        keep = max(self._keep, self.keep_counts)
        [(holds, *removed)] = await link.fetch(control.clean_counts(term, limit=self.batch, keep=keep))
        return max(removed) if holds else None
