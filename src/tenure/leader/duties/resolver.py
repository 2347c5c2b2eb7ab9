"""Learns of the ends of chains and of events, and moves the jobs that wait for them.

A round begins with one statement that looks which of its parts have rows. The parts run one after the other; each is one
statement that handles a batch of rows:
- arm: blockers that were committed since the last round. From then on, the end of their chain cannot be missed.
- resolve: the ends of chains are counted for the jobs that wait for them.
- unblock: jobs that wait for nothing more become pending.
- end: jobs whose blocker failed are canceled, or rolled back if they have something to undo, and groups are completed.
- events: workflows whose events were sent become pending (see `waking`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID

from tenure.leader.duties.duty import RoundResult, TermOver
from tenure.leader.duties.parts import Parts
from tenure.leader.duties.waking import EventWaker
from tenure.leader.reporting import Reporting
from tenure.model.events import Event, JobCanceled, JobCompleted, JobFailed, JobUnblocked, WorkflowWoken
from tenure.model.states import State
from tenure.model.wakeup import Wakeup
from tenure.store import blockers
from tenure.store.blockers import ArmedRow, EndedBlockedRow, ResolvedRow, UnblockedRow
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.moved_jobs import EndedBlockedJob, UnblockedJob
from tenure.store.query import Pick, Query

log = logging.getLogger("tenure")


Answer = TypeVar("Answer", ArmedRow, ResolvedRow, UnblockedRow, EndedBlockedRow)

Part = Callable[[Link, Term], Awaitable[int]]
"""One part of a round. Returns how much it has done: more than 0 means that there may be more to do."""


class Resolver:
    name = "resolver"
    wakes_on = (Wakeup.chain_ended(), Wakeup.event_sent())
    divisible = False
    batch = 1000
    longest_rest = 3.0
    """Seconds. Clients and workers notify the resolver; after this time a lost notification has no effect."""
    rest_if_left = 0.1
    """Seconds until rows are looked at again that another session had locked."""

    def __init__(self, reporting: Reporting | None = None) -> None:
        self._reporting = reporting or Reporting()
        self._left_over = False
        self._arm_after: UUID | None = None
        """Blockers of jobs up to this one were left, because other sessions had locked what they wait for."""
        self._refused = {
            "arm": RefusedRows("to mark a job that others wait for"),
            "resolve": RefusedRows("to record the end of a chain", "chain_id"),
            "unblock": RefusedRows("to unblock a job"),
            "end": RefusedRows("to end a job whose blocker failed, or a group"),
        }
        self.parts: Mapping[str, Part] = {
            "arm": self._arm,
            "resolve": self._resolve,
            "unblock": self._unblock,
            "end": self._end,
            "events": EventWaker(self._reporting).run_once,
        }
        """In the order of a round. A part that fails does not stop the others."""

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        parts, done = Parts(), 0
        self._left_over = False
        try:
            # If it fails, because one of its tables is locked, all parts are tried.
            wanted = await parts.do("look for work", partial(self._find_work, link, term)) or dict.fromkeys(self.parts, True)
            for name, part in self.parts.items():
                if wanted[name] or done:  # what one part has done is work for the next ones
                    done += await parts.do(name, partial(part, link, term)) or 0
        except TermOver:
            return RoundResult(holds=False)
        parts.raise_first()
        rest = 0.0 if done else self.rest_if_left if self._left_over else self.longest_rest
        return RoundResult(holds=True, touched=done, rest=rest)

    async def _find_work(self, link: Link, term: Term) -> dict[str, bool]:
        """By part."""
        [work] = await link.fetch(blockers.find_resolver_work(term))
        if not work.holds:
            raise TermOver
        return {"arm": work.arm, "resolve": work.resolve, "unblock": work.release, "end": work.release, "events": work.events}

    async def _arm(self, link: Link, term: Term) -> int:
        after = self._arm_after
        answers = await self._run("arm", link, lambda pick: blockers.arm(term, limit=self.batch, after=after, pick=pick))
        self._left_over = after is not None or any(answer.left_over for answer in answers)
        self._arm_after = answers[-1].next if self._left_over else None
        for answer in answers:
            self._announce(answer.queues)
        return sum(answer.armed for answer in answers)

    async def _resolve(self, link: Link, term: Term) -> int:
        answers = await self._run("resolve", link, lambda pick: blockers.resolve(term, limit=self.batch, pick=pick))
        return sum(answer.endings for answer in answers)

    async def _unblock(self, link: Link, term: Term) -> int:
        events = self._reporting.events
        listing = events.wants(JobUnblocked) or events.wants(WorkflowWoken)
        answers = await self._run(
            "unblock", link, lambda pick: blockers.unblock(term, limit=self.batch, listing=listing, pick=pick)
        )
        for job in [job for answer in answers for job in answer.jobs]:
            self._emit(_unblocked_event(job))
        for answer in answers:
            self._announce(answer.queues)
            if answer.scheduled:
                self._reporting.notify(Wakeup.job_scheduled())
        return sum(answer.moved for answer in answers)

    async def _end(self, link: Link, term: Term) -> int:
        answers = await self._run("end", link, lambda pick: blockers.end_blocked(term, limit=self.batch, pick=pick))
        for answer in answers:
            self._announce(answer.queues)
        for job in [job for answer in answers for job in answer.jobs]:
            self._report_ended(job)
        return sum(answer.released for answer in answers)

    async def _run(self, part: str, link: Link, query: Callable[[Pick], Query[Answer]]) -> list[Answer]:
        """The answers of the statement, without rows that PostgreSQL refuses."""

        async def send(pick: Pick) -> Answer:
            [answer] = await link.fetch(query(pick))
            if not answer.holds:
                raise TermOver
            return answer

        return await self._refused[part].run(send)

    def _announce(self, queues: list[str]) -> None:
        for queue in queues:
            self._reporting.notify(Wakeup.new_jobs(queue))

    def _emit(self, event: Event) -> None:
        if self._reporting.events.wants(type(event)):
            self._reporting.events.emit(event)

    def _report_ended(self, job: EndedBlockedJob) -> None:
        self._emit(_ended_event(job))
        if job.watched:
            self._reporting.notify(Wakeup.job_ended(str(job.job_id)))
        if job.state in ("canceled", "failed"):
            fields = {"job_id": str(job.job_id), "kind": job.kind, "queue": job.queue, "state": job.state, "error": job.error}
            log.warning("a job ended without a run, because of a job that it waits for", extra=fields)


def _unblocked_event(job: UnblockedJob) -> Event:
    if job.was == "waiting":
        return WorkflowWoken(job_id=job.job_id, kind=job.kind, queue=job.queue)
    return JobUnblocked(job_id=job.job_id, kind=job.kind, queue=job.queue, state=State(job.state))


def _ended_event(job: EndedBlockedJob) -> Event:
    match job.state:
        case "completed":
            return JobCompleted(job_id=job.job_id, kind=job.kind, by=None)
        case "canceled":
            return JobCanceled(job_id=job.job_id, kind=job.kind, reason=job.error, by=None, ran=False)
        case "failed":
            return JobFailed(job_id=job.job_id, kind=job.kind, queue=job.queue, error=job.error)
        case _:  # pending: it is to be rolled back
            return WorkflowWoken(job_id=job.job_id, kind=job.kind, queue=job.queue)
