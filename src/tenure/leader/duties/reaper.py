"""Requeues the jobs of workers whose lease expired, and jobs whose own lease expired."""

from __future__ import annotations

import logging
import time
from typing import NamedTuple

from tenure.leader.duties.duty import RoundResult, TermOver
from tenure.leader.duties.parts import Parts
from tenure.leader.reporting import Reporting
from tenure.leader.requeue import Requeuer, announce
from tenure.periodic import boottime
from tenure.store import jobs, workers
from tenure.store.isolation import RefusedRows
from tenure.store.leases import Term
from tenure.store.link import Link
from tenure.store.moved_jobs import ExpiredRow
from tenure.store.query import Pick
from tenure.store.workers import CondemnedRow, UnknownWorkersRow

log = logging.getLogger("tenure")


class Contact:
    """For how long this process has been in unbroken contact with PostgreSQL."""

    def __init__(self, *, longest_silence: float = 6.0) -> None:
        """After `longest_silence` seconds without an answer the contact counts as broken."""
        self.longest_silence = longest_silence
        self._since = self._last = boottime()

    def touch(self) -> None:
        now = boottime()
        if now - self._last > self.longest_silence:
            self._since = now
        self._last = now

    def broke(self) -> None:
        self._since = self._last = boottime()

    @property
    def age(self) -> float:
        return boottime() - self._since

    @property
    def unbroken_for(self) -> float:
        """Like `age`, but 0 if the last answer is older than `longest_silence` seconds."""
        return 0.0 if boottime() - self._last > self.longest_silence else self.age


class Condemned(NamedTuple):
    """Expired leases that were found, and the workers that were condemned."""

    workers: int
    waiting: bool
    """Condemned workers still hold jobs or have their rows."""
    next_end: float | None
    """Seconds until the next lease of a worker or a job expires."""
    overdue: bool
    """The own lease of a job has expired."""


UNKNOWN = Condemned(0, waiting=True, next_end=None, overdue=True)
"""After a failed statement: requeuing must not depend on it."""


class Reaper:
    name = "reaper"
    wakes_on = ()
    divisible = True
    batch = 500
    patience = 10.0
    """Seconds of unbroken contact before a worker is condemned. After an outage all leases have expired, and this gives their
    holders the time to renew them first."""

    unknown_every = 30.0
    """Seconds between two searches for jobs that are held by a worker without a row."""

    def __init__(self, contact: Contact, reporting: Reporting | None = None, *, every: float = 5.0) -> None:
        """`every`: the longest time between two rounds in seconds. A round starts sooner when a lease expires."""
        self._contact = contact
        self._reporting = reporting or Reporting()
        self.longest_rest = every
        self._next_unknown = 0.0
        self._examined: str | None = None
        self._requeuer = Requeuer(self._reporting)
        self._refused = RefusedRows("to requeue a job")
        self._uncondemned = RefusedRows("to condemn a worker whose lease expired", "worker_id")
        self._unlisted = RefusedRows("to insert a row for a worker that holds jobs and has none", "worker_id")

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        self._contact.touch()
        # A part that is blocked or fails must not stop the others.
        parts = Parts()
        try:
            found = await parts.do("condemn", lambda: self._condemn_expired(link, term)) or UNKNOWN
            unknown = await parts.do("condemn unknown", lambda: self._condemn_unknown(link, term))
        except TermOver:
            return RoundResult(holds=False)
        returned = await parts.do("requeue", lambda: self._requeuer.requeue(link)) if found.waiting or unknown else 0
        expired = await parts.do("expire", lambda: self._expire(link, term)) if found.overdue else 0
        parts.raise_first()
        # What could not be condemned or requeued (rejected, or locked by another session) is overdue in the next round as well.
        stuck = (found.overdue and not expired) or self._uncondemned.leaves_out
        soonest = 1.0 if stuck else 0.2
        rest = self.longest_rest if found.next_end is None else min(self.longest_rest, max(soonest, found.next_end))
        return RoundResult(holds=True, touched=found.workers + (returned or 0) + (expired or 0), rest=rest)

    async def _condemn_expired(self, link: Link, term: Term) -> Condemned:
        reap = self._contact.age >= self.patience

        async def send(pick: Pick) -> CondemnedRow:
            [answer] = await link.fetch(workers.condemn_expired(term, reap=reap, pick=pick))
            if not answer.holds:
                raise TermOver
            return answer

        answers = await self._uncondemned.run(send)
        last = answers[-1]
        return Condemned(
            workers=sum(answer.workers for answer in answers),
            waiting=any(answer.waiting for answer in answers),
            next_end=last.next_end,
            overdue=last.overdue,
        )

    async def _condemn_unknown(self, link: Link, term: Term) -> list[str]:
        if time.monotonic() < self._next_unknown:
            return []

        async def send(pick: Pick) -> UnknownWorkersRow:
            [answer] = await link.fetch(workers.condemn_unknown(term, after=self._examined, pick=pick))
            if not answer.holds:
                raise TermOver
            return answer

        answers = await self._unlisted.run(send)
        unknown = [worker_id for answer in answers for worker_id in answer.ids]
        self._examined = answers[-1].next if answers else None
        self._next_unknown = time.monotonic() + self.unknown_every
        if unknown:
            log.error("jobs held by unknown workers are requeued", extra={"worker_ids": unknown})
        return unknown

    async def _expire(self, link: Link, term: Term) -> int:
        async def send(pick: Pick) -> ExpiredRow:
            [answer] = await link.fetch(jobs.expire(term, limit=self.batch, max_crashes=workers.MAX_CRASHES, pick=pick))
            if not pick.peek:
                announce(self._reporting, answer.queues, answer.jobs)
            return answer

        return sum(answer.requeued + answer.quarantined for answer in await self._refused.run(send))
