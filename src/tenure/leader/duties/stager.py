"""Promotes scheduled and retried jobs when they are due."""

from __future__ import annotations

from tenure.leader.duties.duty import Report
from tenure.store import leases
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.wakeups import DUE


class Stager:
    name = "stager"
    hears = (DUE,)
    divisible = True
    batch = 1000
    longest_rest = 3.0
    """Seconds. Who schedules a job says so; a word that was lost is made good by then."""

    async def run_once(self, link: Link, term: Term) -> Report:
        query = leases.promote(term, limit=self.batch, channel=link.place.channel)
        [(holds, promoted, _told, next_due)] = await link.fetch(query)
        if promoted == self.batch:
            return Report(holds, promoted, 0.0)
        return Report(holds, promoted, min(self.longest_rest, max(0.0, next_due or self.longest_rest)))
