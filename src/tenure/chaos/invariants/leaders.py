from __future__ import annotations

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.ledger import Term
from tenure.chaos.verdict import Invariant


class Leaders(Rule):
    invariant = Invariant("I11", "one leader a term", "a duty's term never goes back, and changes with its holder, by one")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._newest: dict[str, tuple[str | None, int]] = {}

    def term(self, term: Term) -> None:
        if term.term is None:
            self.breach(f"lost its row in term {term.was_term}", duty=term.duty)
            return
        before = self._newest.get(term.duty)
        wrong = None if before is None else _wrong(*before, term.holder, term.term)
        if wrong is not None:
            self.breach(f"{wrong} (change {term.seq})", duty=term.duty)
        if before is None or term.term >= before[1]:
            self._newest[term.duty] = (term.holder, term.term)


def _wrong(was_holder: str | None, was_term: int, holder: str | None, term: int) -> str | None:
    if term < was_term:
        return f"was written by {holder} in term {term}, after term {was_term} of {was_holder} had begun"
    if term > was_term + 1:
        return f"went from term {was_term} to term {term}"
    if term == was_term and holder != was_holder:
        return f"went from {was_holder} to {holder} within term {term}"
    return None
