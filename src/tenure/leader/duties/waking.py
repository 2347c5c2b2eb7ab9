"""Brings together events and the workflows that wait for them. A part of the resolver.

Neither the sender of an event nor a workflow that begins to wait locks anything: both only write a row. Each row is looked at
here after its own commit, so whichever commits last finds the other.
"""

from __future__ import annotations

from typing import TypeVar

from tenure.leader.duties.duty import TermOver
from tenure.leader.reporting import Reporting
from tenure.model.events import WorkflowWoken
from tenure.model.wakeup import Wakeup
from tenure.store import events
from tenure.store.events import NumberedEventsRow, WokenRow
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.query import Pick

Answer = TypeVar("Answer", NumberedEventsRow, WokenRow)


class EventWaker:
    batch = 1000

    def __init__(self, reporting: Reporting) -> None:
        self._reporting = reporting
        self._refused_events = RefusedRows("to number an event", "id")
        self._refused_jobs = RefusedRows("to wake a workflow")

    async def run_once(self, link: Link, term: Term) -> int:
        """Returns how much was done. Raises `TermOver`."""

        async def number(pick: Pick) -> NumberedEventsRow:
            [answer] = await link.fetch(events.number(term, limit=self.batch, pick=pick))
            return _holding(answer)

        async def wake(pick: Pick) -> WokenRow:
            [answer] = await link.fetch(events.wake(term, limit=self.batch, listing=listing, pick=pick))
            if not pick.peek:
                self._announce(answer)
            return _holding(answer)

        listing = self._reporting.events.wants(WorkflowWoken)
        numbered = await self._refused_events.run(number)
        woken = await self._refused_jobs.run(wake)
        return sum(answer.touched for answer in numbered) + sum(answer.checked for answer in woken)

    def _announce(self, answer: WokenRow) -> None:
        for queue in answer.queues:
            self._reporting.notify(Wakeup.new_jobs(queue))
        for job in answer.jobs:
            self._reporting.events.emit(WorkflowWoken(job_id=job.job_id, kind=job.kind, queue=job.queue))


def _holding(answer: Answer) -> Answer:
    if not answer.holds:
        raise TermOver
    return answer
