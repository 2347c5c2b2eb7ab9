"""Adds the counts of settled jobs to the counters of their minute and hour."""

from __future__ import annotations

from tenure.leader.duties.duty import RoundResult
from tenure.store import cleaning
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

    def __init__(self) -> None:
        self._refused = RefusedRows("to merge a row of tenure.tallies", "ctid")

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        async def send(pick: Pick) -> MergedRow:
            [answer] = await link.fetch(cleaning.merge_tallies(term, limit=self.batch, pick=pick))
            return answer

        answers = await self._refused.run(send)
        merged = sum(answer.merged for answer in answers)
        return RoundResult(answers[-1].holds, merged, 0.0 if merged >= self.batch else self.every)
