from __future__ import annotations

from collections import defaultdict

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.kinds import limit_of
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant


class Limits(Rule):
    """What makes room is recorded before what takes it: a claim under a limit counts only what was committed before it. So the
    moves need not stand in the order of commits for this. Such claims are durable: no crash of the server takes one back."""

    invariant = Invariant("I19", "no more than the limit", "of a limited kind no more jobs are held at once than its limit says")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._held: dict[str, set[str]] = defaultdict(set)

    def granted(self, _life: Life, move: Move) -> None:
        most = limit_of(move.kind)
        if most is None:
            return
        held = self._held[move.kind]
        held.add(move.job)
        if len(held) > most:
            others = ", ".join(sorted(held - {move.job})[:most])
            self.breach(f"was granted to worker {move.worker} beside {others}, but {most} may be held", job=move.job)

    def moved(self, _life: Life, move: Move) -> None:
        if move.claim is None and move.kind in self._held:
            self._held[move.kind].discard(move.job)

    def left(self, _life: Life, move: Move) -> None:
        if move.kind in self._held:
            self._held[move.kind].discard(move.job)
