"""Jobs that PostgreSQL refuses to claim, for any reason: they are passed over, and all others are claimed.

A claim is one statement for many jobs, so one job that a trigger or a constraint of the user refuses makes it fail for all. Only
then the refused job is looked for: the jobs that the claim would take are listed, and claimed by halves. As long as there are
refused jobs, claims leave them out by name.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tenure.store.faults import FailedInside, Refused
from tenure.store.isolation import AGAIN_AFTER, MOST_AT_ONCE, MOST_REMEMBERED, MOST_REPORTED
from tenure.store.jobs import PeekedJob
from tenure.store.query import Query, array_literal
from tenure.worker.runs import Run

log = logging.getLogger("tenure")

__all__ = ["MOST_AT_ONCE", "Isolated", "RefusedJobs"]


@dataclass(slots=True)
class Isolated:
    """What became of the jobs of a claim that was refused."""

    runs: list[Run] = field(default_factory=list)
    refused: dict[PeekedJob, Refused] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.runs) + len(self.refused)


class RefusedJobs:
    """Of one worker: reported once, left out of its claims, and tried again after some minutes."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        """When they are tried again; the next one first."""
        self._reported: dict[str, None] = {}
        self._literal = "{}"

    def expire(self) -> bool:
        """True when some are to be tried again. Those that are due soon come along, since finding them again costs a look at
        all pending jobs."""
        if not self._until:
            return False
        now = time.monotonic()
        if next(iter(self._until.values())) > now:
            return False
        self._until = {job_id: until for job_id, until in self._until.items() if until > now + AGAIN_AFTER / 10}
        self._literal = array_literal(tuple(self._until))
        return True

    def left_out(self, query: Query) -> Query:
        """The claim without the refused jobs: the same query, if there are none."""
        return query.passing_over(self._literal) if self._until else query

    def peeking(self, query: Query) -> Query:
        """Claims nothing, returns the jobs that would be claimed."""
        return query.passing_over(self._literal, peek=True)

    def only(self, query: Query, jobs: Sequence[PeekedJob]) -> Query:
        """The claim, restricted to these jobs."""
        return query.passing_over("{}", only=tuple(job.job_id for job in jobs))

    async def isolate(self, jobs: list[PeekedJob], claim: Callable[[Sequence[PeekedJob]], Awaitable[list[Run]]]) -> Isolated:
        """Claims these jobs by halves, until each one that is refused is alone. `claim(jobs)` claims those of them that are
        still pending."""
        isolated = Isolated()
        groups = [jobs] if jobs else []
        while groups:
            group = groups.pop()
            try:
                isolated.runs += await claim(group)
            except (Refused, FailedInside) as error:
                if len(group) > 1:
                    middle = len(group) // 2
                    groups += [group[middle:], group[:middle]]
                else:
                    isolated.refused[group[0]] = error.refusal if isinstance(error, FailedInside) else error
            except Exception:
                if not isolated.runs:
                    raise
                break  # the claimed jobs are ours and must run; the next claim raises the error again
        for run in isolated.runs:
            self._reported.pop(run.job_id, None)
        self._remember(isolated.refused)
        return isolated

    def _remember(self, refused: dict[PeekedJob, Refused]) -> None:
        if not refused:
            return
        new = [job for job in refused if job.job_id not in self._reported]
        for job in refused:
            for memory in (self._until, self._reported):
                memory.pop(job.job_id, None)  # to the end: the oldest are forgotten first
            self._until[job.job_id] = time.monotonic() + AGAIN_AFTER
            self._reported[job.job_id] = None
        for memory in (self._until, self._reported):
            for job_id in list(memory)[: max(0, len(memory) - MOST_REMEMBERED)]:
                del memory[job_id]
        self._literal = array_literal(tuple(self._until))
        self._report({job: refused[job] for job in new})

    def _report(self, new: dict[PeekedJob, Refused]) -> None:
        text = "PostgreSQL refuses to claim a job: it is passed over, and tried again in some minutes"
        for job, error in list(new.items())[:MOST_REPORTED]:
            fields = {"job_id": job.job_id, "kind": job.kind, "queue": job.queue, "sqlstate": error.sqlstate, "error": str(error)}
            log.error(text, extra=fields)
        if len(new) > MOST_REPORTED:
            log.error(text, extra={"more": len(new) - MOST_REPORTED})
