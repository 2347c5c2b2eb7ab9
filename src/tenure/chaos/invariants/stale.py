from __future__ import annotations

from typing import Any

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Effect, Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import State


class Stale(Rule):
    invariant = Invariant("I6", "an old holder writes nothing", "output and effects are those of the run that settled the job")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._without: set[str] = set()

    def settled(self, life: Life, move: Move) -> None:
        if move.state != State.COMPLETED:
            return
        if move.output is None:
            self._without.add(move.job)
        else:
            self._judge(life, move, move.output)

    def amended(self, life: Life, move: Move) -> None:
        if move.state == State.COMPLETED and move.output is not None:
            self._without.discard(move.job)
            self._judge(life, move, move.output)

    def effect(self, effect: Effect) -> None:
        life = None if effect.job is None else self.case.lives.get(effect.job)
        if effect.relation == "effects" and life and life.outcome == State.COMPLETED and effect.fence != life.fence:
            self.breach(f"completed under fence {life.fence}, but an effect was written under fence {effect.fence}", job=life.job)

    def end(self) -> None:
        for job in sorted(self._without):
            self.breach("completed without the output that its handler returns", job=job)

    def _judge(self, life: Life, move: Move, output: Any) -> None:
        made = _made(output)
        last = life.grants[-1] if life.grants else None
        if made != (life.n, move.fence, move.worker) or (last is not None and made[1:] != (last.fence, last.worker)):
            self.breach(
                f"(n {life.n}) was settled under fence {move.fence} of worker {move.worker}, but its output was made for "
                f"n {made[0]} under fence {made[1]} of worker {made[2]}",
                job=move.job,
            )


def _made(output: Any) -> tuple[Any, Any, Any]:
    told = output if isinstance(output, dict) else {}
    return told.get("n"), told.get("fence"), told.get("worker")
