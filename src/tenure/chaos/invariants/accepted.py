from __future__ import annotations

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Final
from tenure.chaos.verdict import Invariant


class Accepted(Rule):
    invariant = Invariant(
        "I1",
        "no accepted job is lost",
        "each job of which a client was told stands at the end, or went because somebody asked for it",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._strays: set[str] = set()

    def stood(self, life: Life | None, final: Final) -> None:
        if life is None:
            self._strays.add(final.job)

    def end(self) -> None:
        lost: set[str] = set()
        for job, began, ended in self.case.asked.accepted():
            life = self.case.lives.get(job)
            if self._is_there(job, life) or self._was_deleted(job, life) or job in lost:
                continue
            if life is None and self.case.lost.touch(began, ended):
                continue  # the standby that leads now never had it
            lost.add(job)
            self.breach(_how(life), job=job)

    def _is_there(self, job: str, life: Life | None) -> bool:
        return job in self._strays if life is None else life.stands

    def _was_deleted(self, job: str, life: Life | None) -> bool:
        return life is not None and life.gone and job in self.case.asked.deleted


def _how(life: Life | None) -> str:
    if life is None:
        return "was accepted, but there is no trace of it"
    if life.gone:
        return f"was accepted and is gone, last seen as {life.left or life.outcome}; nobody asked for that"
    return f"was accepted and is gone, last seen as {life.state}; its going left no trace"
