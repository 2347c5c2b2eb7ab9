from __future__ import annotations

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.ledger import Effect
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

ATOMIC = "atomic"
"""The kind that writes an effect and completes in one transaction."""


class Effects(Rule):
    invariant = Invariant(
        "I17",
        "exactly once for your own rows",
        "a handler's transaction leaves one effect if its job completed by it, and else none",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._fences: dict[str, list[int | None]] = {}

    def effect(self, effect: Effect) -> None:
        if effect.relation != "effects":
            return
        life = None if effect.job is None else self.case.lives.get(effect.job)
        if life is None or life.kind != ATOMIC:
            self.breach(f"left an effect, but job {effect.job} is none that does", n=effect.n)
            return
        if life.n != effect.n:
            self.breach(f"left an effect for offer {effect.n}, but is of offer {life.n}", job=life.job)
        self._fences.setdefault(life.job, []).append(effect.fence)

    def end(self) -> None:
        for life in self.case.lives.values():
            if life.kind != ATOMIC:
                continue
            wanted = [life.fence] if life.outcome == State.COMPLETED else []
            found = self._fences.get(life.job, [])
            if found != wanted:
                fences = ", ".join(map(str, found)) or "none"
                self.breach(f"is {life.outcome or life.state} under fence {life.fence}; effects by fence: {fences}", job=life.job)
