"""Promotes scheduled and retried jobs when they are due."""

from __future__ import annotations

import json
from uuid import UUID

from tenure.leader.duties.duty import RoundResult
from tenure.leader.outlets import Outlets
from tenure.model.events import JobDue
from tenure.store import jobs
from tenure.store.isolation import RefusedRows
from tenure.store.jobs import PromotedRow
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.query import Pick
from tenure.store.wakeup import Wakeup


class Stager:
    name = "stager"
    wakes_on = (Wakeup.job_scheduled(),)
    divisible = True
    batch = 1000
    longest_rest = 3.0
    """Seconds. A client that schedules a job notifies the stager; after this time a lost notification has no effect."""

    def __init__(self, outlets: Outlets | None = None) -> None:
        self._outlets = outlets or Outlets()
        self._refused = RefusedRows("to promote a job")

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        listing = self._outlets.events.wants(JobDue)

        async def send(pick: Pick) -> PromotedRow:
            [answer] = await link.fetch(jobs.promote(term, limit=self.batch, listing=listing, pick=pick))
            if not pick.peek:
                self._announce(answer)
            return answer

        answers = await self._refused.run(send)
        last = answers[-1]
        promoted = sum(answer.promoted for answer in answers)
        if promoted >= self.batch:
            return RoundResult(last.holds, promoted, 0.0)
        return RoundResult(last.holds, promoted, min(self.longest_rest, max(0.0, last.next_due or self.longest_rest)))

    def _announce(self, answer: PromotedRow) -> None:
        for queue in answer.queues:
            self._outlets.notify(Wakeup.new_jobs(queue))
        for job in json.loads(answer.jobs or "[]"):
            self._outlets.events.emit(JobDue(job_id=UUID(job["job_id"]), kind=job["kind"], queue=job["queue"]))
