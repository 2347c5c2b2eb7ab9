"""Jobs that PostgreSQL refuses to claim, for any reason: they are passed over, and all others are claimed.

A claim is one statement for many jobs, so one job that a trigger or a constraint of the user refuses makes it fail for all. Only
then the refused job is looked for: the jobs that the claim would take are listed, and claimed by halves. As long as there are
refused jobs, claims leave them out by name.

The reason may be gone in a moment (a lock that a trigger did not get) or never (a row that breaks a rule), so the time until a
job is tried again grows from seconds to minutes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tenure.store.claim_replies import PeekedJob
from tenure.store.faults import FailedInside, Refused
from tenure.store.isolation import AGAIN_AFTER, FIRST_AGAIN, MOST_AT_ONCE, MOST_REMEMBERED, MOST_REPORTED
from tenure.store.query import Query, T, array_literal
from tenure.worker.run.run import Run

log = logging.getLogger("tenure")

__all__ = ["MOST_AT_ONCE", "Isolated", "RefusedJobs"]

MOST_PER_CALL = 10
"""Refused jobs that one call isolates. Each costs several statements, and the jobs that were claimed wait for them to start."""


@dataclass(slots=True)
class Isolated:
    """What became of the jobs of a claim that was refused."""

    runs: list[Run] = field(default_factory=list)
    refused: dict[PeekedJob, Refused] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.runs) + len(self.refused)


class RefusedJobs:
    """Of one worker: reported once, left out of its claims, and tried again later."""

    def __init__(self) -> None:
        self._again_at: dict[str, float] = {}
        """The jobs that are passed over now."""
        self._pauses: dict[str, float] = {}
        """Seconds for which they were passed over last. Also of those that are tried again now; all of them are reported."""
        self._next = 0.0
        self._literal = "{}"

    def expire(self) -> bool:
        """True when some are to be tried again. Those that are due soon come along, since finding them again costs a look at
        all pending jobs."""
        if not self._again_at or self._next > (now := time.monotonic()):
            return False
        self._again_at = {
            job_id: again_at for job_id, again_at in self._again_at.items() if again_at - self._pauses[job_id] / 10 > now
        }
        self._changed()
        return True

    def claimed(self, runs: Sequence[Run]) -> list[Run]:
        """Forgets those that were refused before."""
        if self._pauses:
            for run in runs:
                self._pauses.pop(run.job_id, None)
        return list(runs)

    def left_out(self, query: Query[T]) -> Query[T]:
        """The claim without the refused jobs: the same query, if there are none."""
        return query.passing_over(self._literal) if self._again_at else query

    def peeking(self, query: Query[T]) -> Query[T]:
        """Claims nothing, returns the jobs that would be claimed."""
        return query.passing_over(self._literal, peek=True)

    def only(self, query: Query[T], jobs: Sequence[PeekedJob]) -> Query[T]:
        """The claim, restricted to these jobs."""
        return query.passing_over("{}", only=tuple(job.job_id for job in jobs))

    async def isolate(self, jobs: list[PeekedJob], claim: Callable[[Sequence[PeekedJob]], Awaitable[list[Run]]]) -> Isolated:
        """Claims these jobs kind by kind, and the kinds in which some are refused by halves, until each one that is refused is
        alone. `claim(jobs)` claims those of them that are still pending. Not all are tried if many are refused."""
        isolated = Isolated()
        untried, halves = _by_kind(jobs), list[list[PeekedJob]]()
        while untried or (halves and len(isolated.refused) < MOST_PER_CALL):
            group = untried.pop() if untried else halves.pop()
            try:
                isolated.runs += await claim(group)
            except (Refused, FailedInside) as error:
                if len(group) > 1:
                    middle = len(group) // 2
                    halves += [group[middle:], group[:middle]]
                else:
                    isolated.refused[group[0]] = error.refusal if isinstance(error, FailedInside) else error
            except Exception:
                if not isolated.runs:
                    raise
                break  # the claimed jobs are ours and must run; the next claim raises the error again
        if isolated.refused:
            self._remember(isolated.refused)
        return isolated

    def _remember(self, refused: dict[PeekedJob, Refused]) -> None:
        now = time.monotonic()
        new = {job: error for job, error in refused.items() if job.job_id not in self._pauses}
        for job_id in (job.job_id for job in refused):
            pause = self._pauses.pop(job_id, None)  # to the end: the oldest are forgotten first
            self._pauses[job_id] = FIRST_AGAIN if pause is None else min(AGAIN_AFTER, 2 * pause)
            self._again_at[job_id] = now + self._pauses[job_id]
        for job_id in list(self._pauses)[: max(0, len(self._pauses) - MOST_REMEMBERED)]:
            del self._pauses[job_id]
            self._again_at.pop(job_id, None)
        self._changed()
        self._report(new)

    def _changed(self) -> None:
        self._next = min(self._again_at.values(), default=0.0)
        self._literal = array_literal(tuple(self._again_at))

    def _report(self, new: dict[PeekedJob, Refused]) -> None:
        text = "PostgreSQL refuses to claim a job: it is passed over, and tried again later"
        for job, error in list(new.items())[:MOST_REPORTED]:
            fields = {"job_id": job.job_id, "kind": job.kind, "queue": job.queue, "sqlstate": error.sqlstate, "error": str(error)}
            log.error(text, extra=fields)
        if len(new) > MOST_REPORTED:
            log.error(text, extra={"more": len(new) - MOST_REPORTED})


def _by_kind(jobs: list[PeekedJob]) -> list[list[PeekedJob]]:
    """Often all jobs of a kind are refused, and none of another. The kind of the first job comes last."""
    kinds: dict[str, list[PeekedJob]] = {}
    for job in jobs:
        kinds.setdefault(job.kind, []).append(job)
    return list(reversed(kinds.values()))
