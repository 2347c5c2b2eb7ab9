"""Compares the jobs that this worker holds according to PostgreSQL with those it runs, and requeues the others.

A job that is held but not run would stay `running` for as long as its worker lives. That happens when the answer to a claim
is lost with its connection, when an error comes between a claim and its slots, and after a failover to a replica that has the
claim but not the settlement.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from tenure.model.wakeup import Wakeup
from tenure.periodic import PeriodicTask
from tenure.store import claims
from tenure.store.claims import HeldJob
from tenure.store.isolation import RefusedRows
from tenure.store.link import Link
from tenure.store.query import Pick

log = logging.getLogger("tenure")

BUSY_EVERY = 5.0
"""Seconds between two comparisons while jobs run here, a claim is in doubt, or a job could not be requeued."""

IDLE_EVERY = 60.0
"""At other times. Every event that can make a job unknown also calls `doubt()`."""

AFTER_DOUBT = (0.0, 2.0, 10.0, 60.0)
"""Seconds after a claim without an answer: its transaction may still be open on the server, behind a pooler for as long as it
waits for a lock, and commit later. At these times other workers look again for jobs that it had locked."""


class Known(Protocol):
    """The jobs that a worker knows."""

    @property
    def held(self) -> set[HeldJob]:
        """Jobs that run here, or whose outcome is still to be written."""

    @property
    def claims_under_way(self) -> Collection[str]:
        """Claims that were sent, and whose jobs are not among `held` yet."""


class _Disowned(NamedTuple):
    """Jobs that were requeued because they do not run here."""

    jobs: int
    peeked: list[str]
    """The ids of the jobs, if `pick.peek`."""


class HeldJobs:
    def __init__(
        self, link: Link, worker_id: str, queues: Collection[str], known: Known, notify: Callable[[Wakeup], None]
    ) -> None:
        self._link = link
        self._worker_id = worker_id
        self._queues = queues
        self._known = known
        self._notify = notify
        self._doubts: list[float] = []
        self._next_idle_look = 0.0
        self._refused = RefusedRows("to requeue a job that is held by this worker but does not run in it")
        self.task = PeriodicTask("held jobs", self._turn)

    def doubt(self) -> None:
        """A claim may have taken jobs of which this worker was not notified."""
        self._doubts = [time.monotonic() + seconds for seconds in AFTER_DOUBT]
        self.task.wake()

    async def _turn(self) -> float:
        now = time.monotonic()
        doubted = [due for due in self._doubts if due <= now]
        if self._known.held or self._doubts or now >= self._next_idle_look:
            some_left = await self._compare(doubted=bool(doubted))
            self._doubts = [due for due in self._doubts if due not in doubted]
            self._next_idle_look = now if some_left else now + IDLE_EVERY
        return max(0.0, min([BUSY_EVERY, *(due - time.monotonic() for due in self._doubts)]))

    async def _compare(self, *, doubted: bool) -> bool:
        """Returns whether unknown jobs were left out, because their rows are locked or refused."""
        before = self._snapshot()
        rows = await self._link.fetch(claims.list_held(self._worker_id))
        after = self._snapshot()
        # Known at either moment is known: a claim may have arrived, or a run ended, while the statement ran.
        unknown = [held for held in rows if not (held in before or held in after)]
        requeued = await self._requeue(unknown) if unknown or doubted else 0
        return requeued < len(unknown)

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(self._known.held, frozenset(self._known.claims_under_way))

    async def _requeue(self, unknown: list[HeldJob]) -> int:
        """The statement names job and claim: one that has been settled or claimed again meanwhile is not touched. Returns the
        number of jobs that were requeued."""

        async def send(pick: Pick) -> _Disowned:
            if pick.peek:
                return _Disowned(0, [held.job_id for held in unknown])
            chosen = unknown if pick.only is None else [held for held in unknown if held.job_id in pick.only]
            rows = await self._link.fetch(claims.disown(chosen, self._queues))
            for row in rows:
                log.warning(
                    "a job was held by this worker but did not run in it: requeued", extra={"job_id": row.id, "kind": row.kind}
                )
            return _Disowned(len(rows), [])

        requeued = sum(answer.jobs for answer in await self._refused.run(send))
        for queue in self._queues:
            self._notify(Wakeup.new_jobs(queue))
        return requeued


class _Snapshot:
    def __init__(self, held: set[HeldJob], claims: frozenset[str]) -> None:
        self._held = held
        self._claims = claims

    def __contains__(self, job: HeldJob) -> bool:
        return job in self._held or job.claim_id in self._claims
