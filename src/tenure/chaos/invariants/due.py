from __future__ import annotations

from typing import NamedTuple

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.kinds import REFUSED
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move, Term
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

STAGER = "stager"
PATIENCE = 8.0
"""Seconds, apart from faults, for which one leader that keeps its duty may leave due jobs where they are."""

OF_A_NEW_LEADER = 30.0
"""If the duty changed hands meanwhile: the time of a failover beside that."""

FAILOVER = 15.0


class Late(NamedTuple):
    job: str
    due: float
    promoted: float


class Due(Rule):
    invariant = Invariant(
        "I22", "what is due is promoted", "a scheduled or retrying job becomes pending soon after its time, whatever else is slow"
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._due: dict[str, float] = {}
        self._late: list[Late] = []
        self._handovers: list[float] = []

    def born(self, _life: Life, move: Move) -> None:
        if move.due is not None:
            self._due[move.job] = move.due

    def moved(self, life: Life, move: Move) -> None:
        due = self._due.pop(move.job, None)
        if due is not None and move.state == State.PENDING and move.at - due > PATIENCE:
            self._note(life, due, move.at)
        if move.due is not None:
            self._due[move.job] = move.due

    def left(self, _life: Life, move: Move) -> None:
        self._due.pop(move.job, None)

    def term(self, term: Term) -> None:
        if term.duty == STAGER and (term.was_holder, term.was_term) != (term.holder, term.term):
            self._handovers.append(term.at)

    def end(self) -> None:
        for job, due in self._due.items():
            if self.case.course.ended - due > PATIENCE:
                self._note(self.case.lives[job], due, self.case.course.ended)
        for late in self._late:
            self._judge(late)

    def _note(self, life: Life, due: float, promoted: float) -> None:
        if not (life.kind.startswith(REFUSED) and self.case.refusals.touch(due, promoted)):
            self._late.append(Late(life.job, due, promoted))

    def _judge(self, late: Late) -> None:
        handed_over = any(late.due - FAILOVER <= at <= late.promoted for at in self._handovers)
        windows, most = (self.case.contact, OF_A_NEW_LEADER) if handed_over else (self.case.unrest, PATIENCE)
        waited = windows.calm(late.due, late.promoted)
        if waited > most:
            said = f"was due, and was promoted {late.promoted - late.due:.1f} s later, {waited:.1f} s of them without faults"
            self.breach(said, job=late.job)
