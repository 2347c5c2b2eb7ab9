"""Claims jobs without a limit and jobs under limits. The two claimers take turns at going first, unless one of them found nothing
a moment ago."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tenure.model.errors import StoreUnavailable
from tenure.model.kinds import Registry
from tenure.model.wakeup import Wakeup
from tenure.periodic import FOREVER
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tenure.worker.claim.claimer import Claimer, ClaimScope, ClaimsUnderWay, WorkerCondemned
from tenure.worker.claim.known_limits import KnownLimits
from tenure.worker.claim.limited_claimer import LimitedClaimer
from tenure.worker.claim.refused_jobs import RefusedJobs
from tenure.worker.run.run import Run

log = logging.getLogger("tenure")

QUIET = 0.2
"""Seconds without a claim under limits after one that found nothing, unless a wake-up announces a job: jobs without a limit must
not pay for it with each of their claims. For as long, jobs without a limit are looked for only after jobs under limits."""

LONGEST_QUIET = 2.0
"""Longest wait, in seconds, for a rate that is used up: it may have been changed by then."""


FAILED_QUIET = 2.0
"""Seconds until jobs under limits are claimed again after PostgreSQL refused it. Other jobs do not wait for that."""


class CombinedClaimer:
    def __init__(
        self,
        database: DatabaseTarget,
        kinds: Registry,
        scope: ClaimScope,
        worker_id: str,
        *,
        notify: Callable[[Wakeup], None],
        recorded: Callable[[str], None],
        unanswered: Callable[[], None],
    ) -> None:
        """`recorded(claim_id)`: a claim may have a row; `unanswered()`: it is not known which jobs one took."""
        # A claim that is lost in a crash of the server never happened, so it need not wait for the disk. One under a limit must
        # not be lost while its job runs: its transaction is durable nevertheless (lock_limits).
        self.link = Link(database, "claim", hot=True, durable=False)
        self._known_limits = KnownLimits(self.link, kinds, list(scope.queues), worker_id, notify)
        self.under_way = ClaimsUnderWay(recorded, unanswered)
        self._refused = refused = RefusedJobs()
        self._unlimited = Claimer(
            self.link, kinds, scope, worker_id, known_limits=self._known_limits, under_way=self.under_way, refused=refused
        )
        self._limited = LimitedClaimer(
            self.link, kinds, scope, worker_id, known_limits=self._known_limits, under_way=self.under_way, refused=refused
        )
        self._limited_first = False
        self._next_limited = 0.0
        self._limited_due = 0.0
        self._limited_error = ""
        self._nudged = False
        self._unlimited_quiet = 0.0
        self._announced = False

    @property
    def rest(self) -> float:
        """Seconds until the next claim is worthwhile, as far as this worker knows. 0: at once."""
        if self._unlimited.look_again:
            return 0.0
        return max(0.0, self._limited_due - time.monotonic()) if self._known_limits.names else FOREVER

    @property
    def under_limits(self) -> bool:
        """Jobs under limits are claimed as well."""
        return bool(self._known_limits.names)

    def limits_changed(self) -> None:
        self._known_limits.doubt()
        self.nudge()

    def nudge(self) -> None:
        """There may be a job that was not there before."""
        self._announced = True
        self._unlimited_quiet = 0.0
        self.released()

    def released(self) -> None:
        """A limit may have room again."""
        self._nudged = True
        self._next_limited = 0.0

    async def claim(self, limit: int) -> list[Run]:
        """At most `limit` jobs."""
        if await self._known_limits.keep() or self._refused.expire():
            self._unlimited.look_everywhere()
        if not self._known_limits.names or time.monotonic() < self._next_limited:
            return await self._unlimited.claim(limit)
        self._limited_first = not self._limited_first or time.monotonic() < self._unlimited_quiet
        first, second = (
            (self._claim_limited, self._claim_unlimited) if self._limited_first else (self._claim_unlimited, self._claim_limited)
        )
        runs = await first(limit)
        if len(runs) == limit:
            return runs
        try:
            return runs + await second(limit - len(runs))
        except Exception:
            if not runs:
                raise
            return runs  # they are ours and must run; the next claim meets the error again

    async def _claim_unlimited(self, limit: int) -> list[Run]:
        self._announced = False
        runs = await self._unlimited.claim(limit)
        # A wake-up that arrived during the claim needs another claim.
        is_quiet = not (runs or self._announced or self._unlimited.look_again)
        self._unlimited_quiet = time.monotonic() + QUIET if is_quiet else 0.0
        return runs

    async def _claim_limited(self, limit: int) -> list[Run]:
        self._nudged = False
        try:
            runs = await self._limited.claim(limit)
        except (StoreUnavailable, WorkerCondemned):
            raise
        except Exception as error:  # noqa: BLE001 - on any error, jobs without a limit continue
            self._report(error)
            self._next_limited = time.monotonic() + FAILED_QUIET
            return []
        self._limited_error = ""
        now = time.monotonic()
        self._limited_due = now + self._limited.rest
        # A wake-up that arrived during the claim needs another claim.
        if not self._nudged and not runs:
            self._next_limited = now + (QUIET if self._limited.rest >= FOREVER else min(self._limited.rest, LONGEST_QUIET))
        return runs

    def _report(self, error: Exception) -> None:
        """Once for each cause in a row."""
        if str(error) != self._limited_error:
            self._limited_error = str(error)
            text = "limited jobs cannot be claimed; trying again every %g s, other jobs are not affected"
            log.error(text, FAILED_QUIET, exc_info=error)

    async def close(self) -> None:
        await self.link.close()
