"""Adds the counts of settled jobs to the counters of their minute and hour, and records the fleet once a minute."""

from __future__ import annotations

import time

from tenure.leader.duties.duty import RoundResult
from tenure.store import cleaning, stats
from tenure.store.cleaning import MergedRow
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.query import Pick


class Rollup:
    name = "rollup"
    wakes_on = ()
    divisible = False
    every = 15.0
    batch = 5000
    most_counted = 10_000
    """Pending jobs of one queue are counted up to this number."""

    def __init__(self) -> None:
        self._refused = RefusedRows("to merge a row of tenure.tallies", "ctid")
        self._record_at = 0.0
        """When the next minute of PostgreSQL's clock begins, by the clock of this process."""

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        async def send(pick: Pick) -> MergedRow:
            [answer] = await link.fetch(cleaning.merge_tallies(term, limit=self.batch, pick=pick))
            return answer

        answers = await self._refused.run(send)
        merged = sum(answer.merged for answer in answers)
        holds = answers[-1].holds and await self._record(link, term)
        rest = 0.0 if merged >= self.batch else min(self.every, max(0.0, self._record_at - time.monotonic()))
        return RoundResult(holds, merged, rest)

    async def _record(self, link: Link, term: Term) -> bool:
        """After the counts: they are needed more than the history of the fleet."""
        if time.monotonic() < self._record_at:
            return True
        [answer] = await link.fetch(stats.record_fleet(term, self.most_counted))
        self._record_at = time.monotonic() + answer.next_in
        return answer.holds
