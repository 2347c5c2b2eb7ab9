"""The catalogue: every kind there is to practise on, deterministic for the same input and attempt.

Serve it with `tenure worker --app tenure.simulate.catalogue:app`. What becomes of each job is foretold by
`tenure.simulate.expectations`; who wants many jobs at once draws them from `tenure.simulate.mix`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure import Job
from tenure.simulate import kinds_failing, kinds_handing_on, kinds_stubborn, kinds_talking, kinds_working
from tenure.simulate.app import app

__all__ = ["JOBS", "Entry", "app", "describe"]

_SHELVES = (kinds_working, kinds_talking, kinds_handing_on, kinds_failing, kinds_stubborn)

JOBS: dict[str, Job[..., ..., Any, Any]] = {
    job.name: job for shelf in _SHELVES for job in vars(shelf).values() if isinstance(job, Job)
}
"""Every kind by its name."""


class Entry(NamedTuple):
    kind: str
    does: str
    ends: str


def describe() -> list[Entry]:
    """What each kind does and how it ends, in its own words."""
    return [_entry(name, job.__doc__ or "") for name, job in JOBS.items()]


def _entry(kind: str, words: str) -> Entry:
    does, _, ends = words.partition(" Ends: ")
    return Entry(kind, does.strip(), ends.strip().removesuffix("."))
