"""Adds the counts of settled jobs to the counters of their minute and hour."""

from __future__ import annotations

from typing import Any

from tenure.leader.duties.duty import RoundResult
from tenure.store import control
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
        async def send(pick: Pick) -> tuple[Any, ...]:
            [answer] = await link.fetch(control.merge_tallies(term, limit=self.batch, pick=pick))
            return answer

        answers = await self._refused.run(send)
        merged = sum(answer[1] for answer in answers)
        return RoundResult(answers[-1][0], merged, 0.0 if merged >= self.batch else self.every)
