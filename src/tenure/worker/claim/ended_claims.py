"""Deletes the rows of claims whose jobs have all ended.

The row of a claim is how its jobs are found when their worker dies, so it must not go before the last of them. The statement
itself looks whether a job is still held. It is apart from settling, so that no outcome waits for it. A row that is locked or
refused stops no other, and is tried again.
"""

from __future__ import annotations

from tenure.periodic import PeriodicTask
from tenure.store import claims
from tenure.store.claims import ForgottenRow
from tenure.store.isolation import RefusedRows
from tenure.store.link import Link
from tenure.store.query import Pick
from tenure.worker.claim.held_jobs import Known

BUSY_EVERY = 1.0
"""Seconds between two deletions while jobs are claimed. The statement looks up each job once, so it must not collect too many."""

IDLE_EVERY = 5.0
"""While none are claimed: claims whose last job took long."""


class EndedClaims:
    def __init__(self, link: Link, worker_id: str, known: Known) -> None:
        self._link = link
        self._worker_id = worker_id
        self._known = known
        self._open: set[str] = set()
        self._others_left = False
        self._refused = RefusedRows("to delete a claim whose jobs have ended", "claim_id")
        self.task = PeriodicTask("ended claims", self._turn)

    def add(self, claim_id: str) -> None:
        """A claim that may have a row."""
        self._open.add(claim_id)

    async def _turn(self) -> float:
        current = {held.claim_id for held in self._known.held} | set(self._known.claims_under_way)
        ended = self._open - current
        if ended or self._others_left:
            await self._forget(current)
            self._open -= ended
        return BUSY_EVERY if ended else IDLE_EVERY

    async def _forget(self, current: set[str]) -> None:
        async def send(pick: Pick) -> ForgottenRow:
            [row] = await self._link.fetch(claims.forget(self._worker_id, current, pick=pick))
            return row

        self._others_left = any(row.others_left for row in await self._refused.run(send))
