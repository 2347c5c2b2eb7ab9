"""The catalogue: every kind of test job. Each behaves the same for the same input and attempt.

Run its workers with `tenure worker --app tenure.simulate.catalogue:app`. `tenure.simulate.expectations` computes how each job
must end; `tenure.simulate.mix` draws many jobs at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure import Job
from tenure.simulate import kinds_enqueuing, kinds_failing, kinds_reporting, kinds_unresponsive, kinds_working
from tenure.simulate.app import app

__all__ = ["JOBS", "Entry", "app", "describe"]

_MODULES = (kinds_working, kinds_reporting, kinds_enqueuing, kinds_failing, kinds_unresponsive)

JOBS: dict[str, Job[..., ..., Any, Any]] = {
    job.name: job for module in _MODULES for job in vars(module).values() if isinstance(job, Job)
}
"""Every job by its name."""


class Entry(NamedTuple):
    kind: str
    does: str
    ends: str


def describe() -> list[Entry]:
    """What each kind does and how it ends, from its docstring."""
    return [_entry(name, job.__doc__ or "") for name, job in JOBS.items()]


def _entry(kind: str, words: str) -> Entry:
    does, _, ends = words.partition(" Ends: ")
    return Entry(kind, does.strip(), ends.strip().removesuffix("."))
