"""Did every job of a simulation end as foretold? From what was sent and what was found; asks nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tenure.client.handle import OVER
from tenure.client.status import JobStatus
from tenure.simulate.expectations import Surprise, check

MOST_SURPRISES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    sent: int
    """Calls; several of the same key are one job."""
    jobs: int
    """With those that jobs themselves handed in."""
    states: Mapping[str, int]
    unfinished: int
    """Not over when they were looked at."""
    crashes: int
    """Runs that ended with their process."""
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
                {"job_id": str(surprise.job_id), "kind": surprise.kind, "told": surprise.told}
                for surprise in self.surprises[:MOST_SURPRISES]
            ],
        }


def judge(sent: Mapping[UUID, str], calls: int, found: Iterable[JobStatus], *, interrupted: bool = False) -> Verdict:
    """`sent` has the kind of each job; `found` may have strangers among it. Interrupted: only what is over counts."""
    ours = families(sent, found)
    known = {job.id for job in ours}
    pending = {job.id for job in ours if job.state not in OVER}
    lost = [Surprise(job_id, kind, "is nowhere to be found") for job_id, kind in sent.items() if job_id not in known]
    surprises = [*lost, *check(ours)]
    if interrupted:
        surprises = [surprise for surprise in surprises if surprise.job_id not in pending]
    return Verdict(
        sent=calls,
        jobs=len(ours),
        states=dict(sorted(Counter(str(job.state) for job in ours).items())),
        unfinished=len(pending),
        crashes=sum(job.crashes for job in ours),
        surprises=surprises,
    )


def families(roots: Collection[UUID], found: Iterable[JobStatus]) -> list[JobStatus]:
    """The jobs that were sent, those that they handed in, and so on."""
    by_id = {job.id: job for job in found}
    known: dict[UUID, bool] = {}

    def is_ours(job: JobStatus) -> bool:
        line: list[UUID] = []
        at: JobStatus | None = job
        while at is not None and at.id not in roots and at.id not in known:
            line.append(at.id)
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        answer = at is not None and (at.id in roots or known[at.id])
        known.update(dict.fromkeys(line, answer))
        return answer

    return [job for job in by_id.values() if is_ours(job)]


def told(verdict: Verdict, replay: str) -> Iterator[str]:
    figures = [(count, state.replace("_", " ")) for state, count in verdict.states.items()]
    if verdict.crashes:
        figures.append((verdict.crashes, "runs ended with their process"))
    width = max((len(f"{count:,}") for count, _ in figures), default=0)
    yield from (f"  {count:>{width},}  {words}" for count, words in figures)
    yield ""
    yield from _surprises(verdict)
    yield f"The same again: {replay}"


def _surprises(verdict: Verdict) -> Iterator[str]:
    who = f"{verdict.jobs:,} jobs, {verdict.sent:,} of them sent and the rest handed in by these"
    if verdict.good and verdict.unfinished:
        yield f"All that were over ended as foretold; {verdict.unfinished:,} were not. ({who}.)"
    elif verdict.good:
        yield f"All ended as foretold: {who}."
    else:
        yield f"{len(verdict.surprises):,} surprises among {who}:"
    yield from (f"  {surprise}" for surprise in verdict.surprises[:MOST_SURPRISES])
    if len(verdict.surprises) > MOST_SURPRISES:
        yield f"  and {len(verdict.surprises) - MOST_SURPRISES:,} more"
