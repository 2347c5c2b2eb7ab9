"""Claims jobs without a limit, starting at the cursors."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Literal
from uuid import uuid4

from tenure.logs import SPELLED_OUT
from tenure.model.claimed_job import ClaimedJob
from tenure.model.kinds import Registry
from tenure.periodic import jittered
from tenure.store import jobs, queues
from tenure.store.claim_replies import ClaimReply, PeekedJob, reply_of
from tenure.store.faults import FailedInside, Refused
from tenure.store.jobs import ClaimRow
from tenure.store.link import Link
from tenure.store.query import Query, array_literal
from tenure.worker.claim.cursors import Cursors, Plan, Positioned
from tenure.worker.claim.known_limits import KnownLimits
from tenure.worker.claim.refused_jobs import MOST_AT_ONCE, RefusedJobs
from tenure.worker.run.run import Run

log = logging.getLogger("tenure")


SURVEY_EVERY = 60.0
"""Seconds. Jobs of unknown priorities are also found by the claim, in the gaps between the known ones."""

Which = Literal["all", "healthy", "suspects"]


@dataclass(frozen=True, kw_only=True)
class ClaimScope:
    """What a worker serves."""

    queues: Sequence[str]
    capabilities: Sequence[str] = ()
    jobs: Which = "all"
    """Suspects are jobs that were in two crashes. A supervisor runs each of them alone in a process, so that only its own
    crash can quarantine it."""


class WorkerCondemned(Exception):  # noqa: N818
    """The worker's lease expired or was revoked: it cannot claim any more."""


class ClaimsUnderWay:
    """Claims that were sent and whose jobs have no slots yet."""

    def __init__(self, recorded: Callable[[str], None], unanswered: Callable[[], None]) -> None:
        """`recorded(claim_id)` is called for each claim that may have a row: it took jobs, or had no answer. `unanswered()` is
        called when one ends without an answer: it may have been committed, or be committed later."""
        self._recorded = recorded
        self._unanswered = unanswered
        self.ids: set[str] = set()

    @contextmanager
    def begin(self) -> Iterator[str]:
        """Gives the id of a new claim."""
        claim_id = str(uuid4())
        self.ids.add(claim_id)
        try:
            yield claim_id
        except BaseException:
            self.ids.discard(claim_id)
            self._recorded(claim_id)
            self._unanswered()
            raise

    def took_jobs(self, claim_id: str) -> None:
        self._recorded(claim_id)

    def started(self) -> None:
        """The jobs of all earlier claims have their slots."""
        self.ids.clear()


def leases_of(kinds: Registry) -> str:
    """By kind, in seconds: of the kinds with their own lease."""
    return json.dumps({name: kind.lease.total_seconds() for name, kind in kinds.items() if kind.lease})


class Claimer:
    """Of jobs without a limit."""

    def __init__(
        self,
        link: Link,
        kinds: Registry,
        scope: ClaimScope,
        worker_id: str,
        *,
        known_limits: KnownLimits,
        under_way: ClaimsUnderWay,
        refused: RefusedJobs,
    ) -> None:
        self._link = link
        self._kinds = kinds
        self._scope = scope
        self._worker_id = worker_id
        self._known_limits = known_limits
        self._cursors = Cursors(scope.queues)
        self._under_way = under_way
        self._refused = refused
        self._isolated = False
        self._reported: set[str] = set()
        self._next_survey = 0.0
        self._outdated = False

    @property
    def look_again(self) -> bool:
        """Jobs were requeued that the last claim did not look for yet, or it took nothing because limits have changed, or it
        took fewer than there are because some were refused."""
        return self._cursors.returned or self._outdated or self._isolated

    def look_everywhere(self) -> None:
        """The worker serves other kinds or queues than before."""
        self._cursors.rewind_all()

    async def claim(self, limit: int) -> list[Run]:
        """At most `limit` jobs, highest priority first, FIFO inside."""
        if time.monotonic() >= self._next_survey:
            await self._survey()
        plan = self._plan()
        began = time.monotonic()
        self._isolated = False
        try:
            with self._under_way.begin() as claim_id:
                rows = await self._link.fetch(self._refused.left_out(self._query(claim_id, plan, limit)))
        except (Refused, FailedInside):
            return await self._claim_others(limit)
        reply = reply_of(rows)
        if self._is_outdated(reply):
            return []
        found = _claimed(rows)
        self._learn(plan, found, limit, reply, began)
        return self._runs(found, claim_id)

    async def _claim_others(self, limit: int) -> list[Run]:
        """After a refusal: finds the jobs that are refused, and claims the others. Raises the refusal if it is not a matter of
        single jobs, because then the peek is refused as well."""
        tried, limit = 0, min(limit, MOST_AT_ONCE)
        while tried < MOST_AT_ONCE:
            plan, began = self._plan(), time.monotonic()
            rows = await self._link.fetch(self._refused.peeking(self._query(str(uuid4()), plan, limit)))
            reply = reply_of(rows)
            if not reply.holds:
                raise WorkerCondemned
            if self._is_outdated(reply):
                return []
            isolated = await self._refused.isolate(reply.peeked, partial(self._claim_only, plan))
            if isolated.count == len(reply.peeked):
                # All that the peek found is claimed or refused, so the cursors may pass it, as after a claim.
                self._learn(plan, reply.peeked, limit, reply, began)
            if isolated.runs or not isolated.refused:
                self._isolated = bool(isolated.runs)
                return isolated.runs
            tried += len(isolated.refused)
        return []

    async def _claim_only(self, plan: Plan, these: Sequence[PeekedJob]) -> list[Run]:
        with self._under_way.begin() as claim_id:
            rows = await self._link.fetch(self._refused.only(self._query(claim_id, plan, len(these)), these))
        if not reply_of(rows).holds:
            raise WorkerCondemned
        return self._runs(_claimed(rows), claim_id)

    def _runs(self, found: list[ClaimedJob], claim_id: str) -> list[Run]:
        # An UPDATE returns its rows in no certain order. Each sort keeps the order of equals.
        found.sort(key=attrgetter("position"))
        found.sort(key=attrgetter("priority"), reverse=True)
        if found:
            self._under_way.took_jobs(claim_id)
        return self._refused.claimed([Run(self._kinds[job.kind], job, claim_id, self._worker_id) for job in found])

    def _plan(self) -> Plan:
        return self._cursors.plan(time.monotonic()).without(self._known_limits.closed_queues)

    def _is_outdated(self, reply: ClaimReply) -> bool:
        """Limits have changed, so nothing was claimed."""
        self._outdated = reply.holds and reply.limits != self._known_limits.version
        if self._outdated:
            self._known_limits.doubt()
        return self._outdated

    def _query(self, claim_id: str, plan: Plan, limit: int) -> Query[jobs.ClaimRow]:
        return jobs.claim(
            worker_id=self._worker_id,
            claim_id=claim_id,
            lanes=plan.to_json(),
            limit=limit,
            kinds=array_literal([kind for kind in self._kinds.served if kind not in self._known_limits.closed_kinds]),
            capabilities=array_literal(list(self._scope.capabilities)),
            leases=leases_of(self._kinds),
            which=self._scope.jobs,
            limits=self._known_limits.version,
        )

    def _learn(self, plan: Plan, found: Sequence[Positioned], limit: int, reply: ClaimReply, began: float) -> None:
        if not reply.holds:
            raise WorkerCondemned
        if len(found) > limit:
            fields = {"jobs": len(found), "slots": limit}
            log.critical("a claim took more jobs than there are slots: please report this", extra=fields)
        now = time.monotonic()
        self._cursors.learn(plan, found, limit, reply, now=now, took=now - began)

    async def _survey(self) -> None:
        """Learns the priorities of pending jobs, and logs once each kind that this worker cannot run."""
        self._next_survey = time.monotonic() + jittered(SURVEY_EVERY)
        kinds = array_literal(self._kinds.served)
        for row in await self._link.fetch(queues.survey(json.dumps(list(self._scope.queues)), kinds)):
            self._cursors.add_priority(row.queue, row.priority)
            self._report(row.queue, row.unknown)

    def _report(self, queue: str, unknown: Iterable[str]) -> None:
        for kind in unknown:
            if kind not in self._reported:
                self._reported.add(kind)
                text = (
                    "queue %r has jobs of kind %r, which this worker does not know: they are left to other workers. "
                    "Start a worker whose app defines it, or import the module that does"
                )
                log.warning(text, queue, kind, extra={"queue": queue, "kind": kind, SPELLED_OUT: True})


def _claimed(rows: Sequence[ClaimRow]) -> list[ClaimedJob]:
    return [row.job for row in rows[1:]]
