"""Promotes scheduled and retried jobs when they are due, and cancels jobs that were not started before they expired."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tenure.leader.duties.duty import RoundResult
from tenure.leader.duties.parts import Parts
from tenure.leader.reporting import Reporting
from tenure.model.events import JobCanceled, JobDue
from tenure.model.wakeup import Wakeup
from tenure.store import jobs
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.moved_jobs import CanceledExpiredRow, ExpiredJob, PromotedRow
from tenure.store.query import Pick

log = logging.getLogger("tenure")


class Stager:
    name = "stager"
    wakes_on = (Wakeup.job_scheduled(),)
    divisible = True
    batch = 1000
    longest_rest = 3.0
    """Seconds. A client that schedules a job notifies the stager; after this time a lost notification has no effect."""

    def __init__(self, reporting: Reporting | None = None) -> None:
        self._reporting = reporting or Reporting()
        self._refused = RefusedRows("to promote a job")
        self._refused_expired = RefusedRows("to cancel an expired job")

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        """Expired jobs first: they must not become pending."""
        parts = Parts()
        canceled = await parts.do("expired jobs", lambda: self._cancel_expired(link, term))
        promoted = await parts.do("due jobs", lambda: self._promote(link, term))
        parts.raise_first()
        assert canceled is not None
        assert promoted is not None
        touched = canceled.touched + promoted.touched
        return RoundResult(promoted.holds and canceled.holds, touched, min(canceled.rest, promoted.rest))

    async def _cancel_expired(self, link: Link, term: Term) -> RoundResult:
        async def send(pick: Pick) -> CanceledExpiredRow:
            [answer] = await link.fetch(jobs.cancel_expired(term, limit=self.batch, pick=pick))
            if not pick.peek:
                self._announce_canceled(answer.jobs)
            return answer

        answers = await self._refused_expired.run(send)
        canceled = sum(answer.canceled for answer in answers)
        return self._result(answers[-1].holds, canceled, answers[-1].next_due)

    async def _promote(self, link: Link, term: Term) -> RoundResult:
        listing = self._reporting.events.wants(JobDue)

        async def send(pick: Pick) -> PromotedRow:
            [answer] = await link.fetch(jobs.promote(term, limit=self.batch, listing=listing, pick=pick))
            if not pick.peek:
                self._announce(answer)
            return answer

        answers = await self._refused.run(send)
        promoted = sum(answer.promoted for answer in answers)
        return self._result(answers[-1].holds, promoted, answers[-1].next_due)

    def _result(self, holds: bool, moved: int, next_due: float | None) -> RoundResult:
        if moved >= self.batch:
            return RoundResult(holds, moved, 0.0)
        return RoundResult(holds, moved, min(self.longest_rest, max(0.0, next_due or self.longest_rest)))

    def _announce_canceled(self, canceled: Sequence[ExpiredJob]) -> None:
        for job in canceled:
            fields = {"job_id": str(job.job_id), "kind": job.kind}
            log.info("job canceled, because it was not started before it expired", extra=fields)
            if job.watched:
                self._reporting.notify(Wakeup.job_ended(str(job.job_id)))
            if self._reporting.events.wants(JobCanceled):
                self._reporting.events.emit(JobCanceled(job_id=job.job_id, kind=job.kind, reason=job.reason, by=None, ran=False))
        if any(job.dependants for job in canceled):
            self._reporting.notify(Wakeup.chain_ended())

    def _announce(self, answer: PromotedRow) -> None:
        for queue in answer.queues:
            self._reporting.notify(Wakeup.new_jobs(queue))
        for job in answer.jobs:
            self._reporting.events.emit(JobDue(job_id=job.job_id, kind=job.kind, queue=job.queue))
