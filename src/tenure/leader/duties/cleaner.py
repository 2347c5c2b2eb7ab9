"""Makes the partitions of history ahead of time, drops the old ones, and removes what only they were kept for."""

from __future__ import annotations

import logging

from tenure.leader.duties.duty import Report
from tenure.store import control, leases
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.query import Query

log = logging.getLogger("tenure")


class Cleaner:
    name = "cleaner"
    hears = ()
    divisible = False
    every = 1200.0
    days_ahead = 7
    batch = 2000
    keep_counts = 90 * 86400.0

    def __init__(self, keep: float, keep_dead: float) -> None:
        self._keep, self._keep_dead = keep, keep_dead
        self._keys_after: tuple[str, str] | None = None

    async def run_once(self, link: Link, term: Term) -> Report:
        rows = await link.fetch(leases.keep_history(term, days_ahead=self.days_ahead, keep=self._keep))
        if not rows:
            return Report(holds=False)
        [(made, dropped)] = rows
        if made or dropped:
            log.info("history: %d partitions made, %d dropped", made, dropped)
        removed = [
            await self._clean_keys(link, term),
            await self._most(link, control.clean_traces(term, limit=self.batch, keep=self._keep)),
            await self._most(link, control.clean_counts(term, limit=self.batch, keep=max(self._keep, self.keep_counts))),
            await self._most(link, control.clean_dead(term, limit=self.batch, keep=self._keep_dead)),
            await self._most(link, leases.clean_history(term, limit=self.batch, keep=self._keep)),
        ]
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

    async def _most(self, link: Link, query: Query) -> int | None:
        """Of what was removed, the largest number: a full batch means that there is more. None: the term is over."""
        [(holds, *removed)] = await link.fetch(query)
        return max(removed) if holds else None
