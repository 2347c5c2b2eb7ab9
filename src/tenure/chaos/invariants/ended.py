from __future__ import annotations

from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant


class Ended(Rule):
    invariant = Invariant("I3", "one outcome", "a job comes to history once, and never back from there")

    def settled(self, life: Life, move: Move) -> None:
        if life.outcome is not None:
            self.breach(f"came to history as {move.state}, but had been there as {life.outcome}", job=move.job)

    def amended(self, _life: Life, move: Move) -> None:
        if move.state != move.was:
            self.breach(f"was {move.was} in history and became {move.state}", job=move.job)

    def granted(self, life: Life, _move: Move) -> None:
        if life.reborn:
            self._came_back(life)

    moved = granted

    def reborn(self, life: Life, move: Move) -> None:
        if life.relation == "jobs" or life.reborn:
            self.breach("has two rows in jobs", job=move.job)

    def end(self) -> None:
        for life in self.case.lives.values():
            if life.reborn:
                self._came_back(life)

    def _came_back(self, life: Life) -> None:
        self.breach(f"came back to jobs after it had ended ({life.outcome or 'deleted'})", job=life.job)
