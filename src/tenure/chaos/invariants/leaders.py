"""I11: one leader per term."""

from __future__ import annotations

from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.ledger import TermChange
from tenure.chaos.verdict import Invariant


class OneLeaderPerTerm(Rule):
    invariant = Invariant("I11", "one leader per term", "the term of a duty never decreases, and a new holder has the next term")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._newest: dict[str, tuple[str | None, int]] = {}

    def on_term(self, change: TermChange) -> None:
        if change.term is None:
            self.report(f"lost its row in term {change.was_term}", duty=change.duty)
            return
        before = self._newest.get(change.duty)
        wrong = None if before is None else _wrong(*before, change.holder, change.term)
        if wrong is not None:
            self.report(f"{wrong} (change {change.seq})", duty=change.duty)
        if before is None or change.term >= before[1]:
            self._newest[change.duty] = (change.holder, change.term)


def _wrong(was_holder: str | None, was_term: int, holder: str | None, term: int) -> str | None:
    if term < was_term:
        return f"was written by {holder} in term {term}, after term {was_term} of {was_holder} had begun"
    if term > was_term + 1:
        return f"went from term {was_term} to term {term}"
    if term == was_term and holder != was_holder:
        return f"went from {was_holder} to {holder} within term {term}"
    return None
