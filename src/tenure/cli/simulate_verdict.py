"""Checks whether every job of a simulation ended as expected, from what was enqueued and what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tenure.client.handle import OVER
from tenure.client.status import JobStatus
from tenure.simulate.expectations import Surprise, check

MAX_SURPRISES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationVerdict:
    sent: int
    """Calls; several with the same key are one job."""
    jobs: int
    """Including those that jobs enqueued."""
    states: Mapping[str, int]
    unfinished: int
    """Jobs that had not ended when they were checked."""
    crashes: int
    """Runs that ended because their process died."""
    surprises: list[Surprise]

    @property
    def good(self) -> bool:
        return not self.surprises

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.good,
            "sent": self.sent,
            "jobs": self.jobs,
            "states": dict(self.states),
            "unfinished": self.unfinished,
            "crashes": self.crashes,
            "surprises": len(self.surprises),
            "first_surprises": [
                {"job_id": str(surprise.job_id), "kind": surprise.kind, "problem": surprise.problem}
                for surprise in self.surprises[:MAX_SURPRISES]
            ],
        }


def check_jobs(
    sent: Mapping[UUID, str], calls: int, found: Iterable[JobStatus], *, interrupted: bool = False
) -> SimulationVerdict:
    """`sent` has the kind of each job; `found` may contain other jobs. Interrupted: only jobs that have ended count."""
    ours = with_descendants(sent, found)
    known = {job.id for job in ours}
    pending = {job.id for job in ours if job.state not in OVER}
    lost = [Surprise(job_id, kind, "is lost") for job_id, kind in sent.items() if job_id not in known]
    surprises = [*lost, *check(ours)]
    if interrupted:
        surprises = [surprise for surprise in surprises if surprise.job_id not in pending]
    return SimulationVerdict(
        sent=calls,
        jobs=len(ours),
        states=dict(sorted(Counter(str(job.state) for job in ours).items())),
        unfinished=len(pending),
        crashes=sum(job.crashes for job in ours),
        surprises=surprises,
    )


def with_descendants(roots: Collection[UUID], found: Iterable[JobStatus]) -> list[JobStatus]:
    """The jobs that were enqueued, the jobs that these enqueued, and so on."""
    by_id = {job.id: job for job in found}
    known: dict[UUID, bool] = {}

    def is_ours(job: JobStatus) -> bool:
        line: list[UUID] = []
        at: JobStatus | None = job
        while at is not None and at.id not in roots and at.id not in known:
            line.append(at.id)
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        ours = at is not None and (at.id in roots or known[at.id])
        known.update(dict.fromkeys(line, ours))
        return ours

    return [job for job in by_id.values() if is_ours(job)]


def report_lines(verdict: SimulationVerdict, replay: str) -> Iterator[str]:
    figures = [(count, state.replace("_", " ")) for state, count in verdict.states.items()]
    if verdict.crashes:
        figures.append((verdict.crashes, "runs ended because their process died"))
    width = max((len(f"{count:,}") for count, _ in figures), default=0)
    yield from (f"  {count:>{width},}  {words}" for count, words in figures)
    yield ""
    yield from _surprise_lines(verdict)
    yield f"Repeat it with: {replay}"


def _surprise_lines(verdict: SimulationVerdict) -> Iterator[str]:
    jobs = f"{verdict.jobs:,} jobs from {verdict.sent:,} calls and the jobs that these enqueued"
    if verdict.good and verdict.unfinished:
        yield f"All jobs that ended did so as expected; {verdict.unfinished:,} had not ended ({jobs})."
    elif verdict.good:
        yield f"All jobs ended as expected: {jobs}."
    else:
        yield f"{len(verdict.surprises):,} differences from what was expected ({jobs}):"
    yield from (f"  {surprise}" for surprise in verdict.surprises[:MAX_SURPRISES])
    if len(verdict.surprises) > MAX_SURPRISES:
        yield f"  and {len(verdict.surprises) - MAX_SURPRISES:,} more"
