"""Adds the counts of settled jobs to those of their minute and hour."""

from __future__ import annotations

from tenure.leader.duties.duty import Report
from tenure.store import control
from tenure.store.leases import Term
from tenure.store.link import Link


class Rollup:
    name = "rollup"
    hears = ()
    divisible = False
    every = 15.0
    batch = 5000

    async def run_once(self, link: Link, term: Term) -> Report:
        [(holds, merged)] = await link.fetch(control.merge_tallies(term, limit=self.batch))
        return Report(holds, merged, 0.0 if merged == self.batch else self.every)
