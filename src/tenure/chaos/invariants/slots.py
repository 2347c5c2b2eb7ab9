from __future__ import annotations

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Run
from tenure.chaos.verdict import Invariant

STUBBORN = "stubborn"
"""Kinds whose name begins so do not end when told; their slot is given to others meanwhile."""

MOST_NAMED = 5  # of those that ran at once


class Slots(Rule):
    invariant = Invariant("I8", "no more runs than slots", "a process never runs more handlers at once than its concurrency")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._process: tuple[int, str] | None = None
        self._running: set[tuple[str, int]] = set()

    def ran(self, life: Life | None, run: Run) -> None:
        process = (run.pid, run.worker)
        if process != self._process:  # lines come process by process
            self._process = process
            self._running.clear()
        if run.what != "started":
            self._running.discard((run.job, run.fence))
        elif life is None or not life.kind.startswith(STUBBORN):
            self._running.add((run.job, run.fence))
            if len(self._running) > self.case.course.concurrency:
                self.breach(f"ran in process {run.pid} of worker {run.worker} at once with {self._others(run.job)}", job=run.job)

    def _others(self, job: str) -> str:
        others = sorted(other for other, _ in self._running if other != job)
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        return ", ".join(others[:MOST_NAMED]) + more
