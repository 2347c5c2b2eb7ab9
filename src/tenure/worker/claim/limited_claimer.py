"""Claims jobs under limits, as many as the limits leave room for.

Limits are exact, because claims under a limit are serialized: the first statement locks the limits, the second counts the running
jobs and claims, in a durable transaction. The count sees every earlier claim, since its snapshot is newer than the lock. Both are
sent at once: while the limits are locked, no one waits for this process. A worker that does not get the lock tries again soon.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from uuid import uuid4

from tenure.model.kinds import Registry
from tenure.model.limits import kind_limit, queue_limit
from tenure.periodic import FOREVER, jittered
from tenure.store import limits
from tenure.store.claim_replies import LimitedClaimReply, PeekedJob, reply_of
from tenure.store.faults import FailedInside, Refused
from tenure.store.limits import LimitedClaimRow
from tenure.store.link import Link
from tenure.store.query import Query, array_literal
from tenure.worker.claim.claimer import ClaimScope, ClaimsUnderWay, WorkerCondemned, leases_of
from tenure.worker.claim.known_limits import KnownLimits
from tenure.worker.claim.refused_jobs import MOST_AT_ONCE, RefusedJobs
from tenure.worker.run.run import Run

LimitedClaim = Query[LimitedClaimRow]

STEPS = 100
"""Limit groups that one claim looks at in each queue."""

LOCKED_REST = 0.02
"""Seconds until a limit is tried again that another worker has locked: about as long as a claim takes."""


class LimitedClaimer:
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
        self._under_way = under_way
        self._refused = refused
        self._after = dict.fromkeys(scope.queues, "")
        self._rounds = 0
        self.rest = FOREVER
        """Seconds until the next claim is worthwhile, as far as this worker knows."""

    async def claim(self, limit: int) -> list[Run]:
        """At most `limit` jobs."""
        self.rest = FOREVER
        if not self._known_limits.names:
            return []
        try:
            return await self._claim(limit, self._refused.left_out, self._known_limits.names)
        except (Refused, FailedInside):
            return await self._claim_others(limit)

    async def _claim(self, limit: int, pick: Callable[[LimitedClaim], LimitedClaim], names: Sequence[str]) -> list[Run]:
        with self._under_way.begin() as claim_id:
            rows = await self._ask(claim_id, limit, pick, names)
        if not rows:
            return []
        reply = reply_of(rows)
        if not reply.holds:
            raise WorkerCondemned
        found = [row.job for row in rows[1:]]
        self._learn(reply, len(found))
        if found:
            self._under_way.took_jobs(claim_id)
        return self._refused.claimed([Run(self._kinds[job.kind], job, claim_id, self._worker_id) for job in found])

    async def _claim_others(self, limit: int) -> list[Run]:
        """After a refusal: finds the jobs that are refused, and claims the others. Raises the refusal if it is not a matter of
        single jobs, because then the peek is refused as well."""
        tried, limit = 0, min(limit, MOST_AT_ONCE)
        while tried < MOST_AT_ONCE:
            rows = await self._ask(str(uuid4()), limit, self._refused.peeking, self._known_limits.names)
            peeked = reply_of(rows).peeked if rows else []
            isolated = await self._refused.isolate(peeked, self._claim_only)
            if isolated.runs or not isolated.refused:
                if isolated.runs:
                    self.rest = 0.0  # there may be more than the peek has found
                return isolated.runs
            tried += len(isolated.refused)
        return []

    async def _claim_only(self, these: Sequence[PeekedJob]) -> list[Run]:
        # Only their own limits: while these jobs are refused, other workers must find the other limits free.
        wanted = {name for job in these for name in (kind_limit(job.kind), queue_limit(job.queue))}
        names = [name for name in self._known_limits.names if name in wanted]
        return await self._claim(len(these), lambda query: self._refused.only(query, these), names)

    async def _ask(
        self, claim_id: str, limit: int, pick: Callable[[LimitedClaim], LimitedClaim], names: Sequence[str]
    ) -> Sequence[LimitedClaimRow]:
        """`pick` chooses among the jobs that the query claims; `names` are the limits that it may claim under."""
        locks, rows = await self._link.fetch_both(limits.lock(names, self._scope.queues), pick(self._query(claim_id, limit)))
        if not all(row.locked for row in locks):
            self.rest = jittered(LOCKED_REST)
        return rows if any(row.locked for row in locks) else []

    def _query(self, claim_id: str, limit: int) -> LimitedClaim:
        return limits.claim(
            worker_id=self._worker_id,
            claim_id=claim_id,
            locked=None,
            queues=json.dumps([{"queue": queue, "after": after} for queue, after in self._after.items()]),
            steps=STEPS,
            limit=limit,
            kinds=array_literal(self._kinds.served),
            capabilities=array_literal(list(self._scope.capabilities)),
            leases=leases_of(self._kinds),
            which=self._scope.jobs,
        )

    def _learn(self, reply: LimitedClaimReply, found: int) -> None:
        self._after |= reply.cursors or {}
        regrouping = reply.stale and self._known_limits.report_outdated_groups()
        if reply.wait is not None:
            self.rest = min(self.rest, reply.wait)
        self._rounds = 0 if found else self._rounds + reply.around
        # Twice around without a job: all groups are at their limits, and another claim would not help.
        if regrouping or reply.chosen > found or (reply.more and self._rounds < 2):
            self.rest = 0.0
