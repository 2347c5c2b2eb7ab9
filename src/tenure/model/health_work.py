"""Health: jobs that wait for something that will not happen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tenure.model.findings import Finding, counted, span

MANY_DEAD_LETTERS = 10
"""In an hour."""

MOST_DEAD_LETTERS, MOST_HELD = 10_000, 1000
"""Jobs that the statements count at most."""


@dataclass(frozen=True, slots=True)
class PausedQueue:
    name: str
    age: float
    by: str | None
    reason: str | None
    waiting: int
    capped: bool = False
    """Counting stopped at the limit; there may be more."""

    def findings(self) -> Iterator[Finding]:
        if self.waiting:
            who = f" by {self.by}" if self.by else ""
            why = f" ({self.reason})" if self.reason else ""
            yield Finding(
                "paused_queue",
                f"queue {self.name!r} is paused for {span(self.age)}{who}{why}, "
                f"and {counted(self.waiting, capped=self.capped)} {_waits(self.waiting)} in it",
                f"resume it: tenure queues resume {self.name}",
                about=self.name,
            )


@dataclass(frozen=True, slots=True)
class Stranded:
    """Pending jobs that no live worker can run."""

    queue: str
    kind: str
    capability: str | None
    jobs: int
    age: float
    for_queue: int
    """Live workers that serve the queue; of those, that know the kind."""
    for_kind: int
    capped: bool = False
    """Counting stopped at the limit; there may be more."""

    def findings(self) -> Iterator[Finding]:
        waiting = (
            f"{counted(self.jobs, capped=self.capped)} of kind {self.kind!r} {_waits(self.jobs)} in queue {self.queue!r} "
            f"for {span(self.age)} or less"
        )
        about = " ".join(part for part in (self.queue, self.kind, self.capability) if part)
        if self.for_queue == 0:
            yield Finding(
                "no_worker_for_queue",
                f"{waiting}, but no live worker serves that queue",
                f"start one: tenure worker --app MODULE:APP --queues {self.queue}",
                about=about,
            )
        elif self.for_kind == 0:
            yield Finding(
                "no_worker_for_kind",
                f"{waiting}, but no live worker of that queue knows the kind",
                f"deploy code that defines it, or cancel the jobs: tenure jobs cancel --all --kind {self.kind}",
                about=about,
            )
        else:
            yield Finding(
                "no_worker_for_capability",
                f"{waiting}, but no live worker of that queue has capability {self.capability!r}",
                f"start one: tenure worker --app MODULE:APP --capabilities {self.capability}",
                about=about,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    last_hour: int = 0
    total: int = 0
    kind: str | None = None
    """The most frequent of the last hour."""

    def findings(self) -> Iterator[Finding]:
        if self.last_hour >= MANY_DEAD_LETTERS:
            yield Finding(
                "dead_letters",
                f"{counted(self.last_hour)} became dead letters in the last hour, most of kind {self.kind!r}; "
                f"in all: {counted(self.total, capped=self.total >= MOST_DEAD_LETTERS)}",
                "see why: tenure jobs list --state dead_letter",
            )


@dataclass(frozen=True, slots=True)
class HeldByUnknown:
    """Running jobs whose worker has no row."""

    jobs: int

    def findings(self) -> Iterator[Finding]:
        if self.jobs:
            yield Finding(
                "held_by_unknown",
                f"{counted(self.jobs, capped=self.jobs >= MOST_HELD)} {'is' if self.jobs == 1 else 'are'} held by workers that "
                "are not known",
                "the reaper requeues them: see `tenure leaders`, and start a worker if none is alive",
            )


@dataclass(frozen=True, slots=True)
class HeldWorkflows:
    """Workflows of a kind whose code differs from what they have recorded."""

    kind: str
    jobs: int
    example: str
    reason: str

    def findings(self) -> Iterator[Finding]:
        number = f"{'at least ' if self.jobs >= MOST_HELD else ''}{self.jobs:,}"
        held = "workflow of kind {} is held" if self.jobs == 1 else "workflows of kind {} are held"
        yield Finding(
            "held_workflows",
            f"{number} {held.format(repr(self.kind))}, because the code differs from what was recorded, such as {self.example}: "
            f"{self.reason}",
            "deploy code that has the recorded steps and run `tenure workflows resume ID`, or run it again from an earlier step "
            f"by `tenure workflows fork ID`, or cancel it; see `tenure workflows show {self.example}`",
            about=self.kind,
        )


def _waits(jobs: int) -> str:
    return "waits" if jobs == 1 else "wait"
