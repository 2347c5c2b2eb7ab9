from __future__ import annotations

from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import FINISHED, FIRST, LEGAL_MOVES, State

LEGAL = frozenset((str(before), str(after)) for before, allowed in LEGAL_MOVES.items() for after in allowed)
FIRST_STATES = frozenset(map(str, FIRST))
LAST_STATES = frozenset(map(str, FINISHED))


class Legal(Rule):
    invariant = Invariant(
        "I7", "only legal moves", "states change as the table of moves allows; rows go where somebody asked for it"
    )

    def born(self, _life: Life, move: Move) -> None:
        if move.state not in FIRST_STATES:
            self.breach(f"began as {move.state}", job=move.job)

    def granted(self, _life: Life, move: Move) -> None:
        self._judge(move.was, move)

    def moved(self, _life: Life, move: Move) -> None:
        # The same state under the same claim: another place, or a lease that goes on.
        if move.was != move.state or move.claim != move.was_claim:
            self._judge(move.was, move)

    def settled(self, life: Life, move: Move) -> None:
        if life.relation == "jobs":
            self.breach(f"came to history as {move.state} and was still in jobs as {life.state}", job=move.job)
        elif move.state not in LAST_STATES:
            self.breach(f"came to history as {move.state}", job=move.job)
        elif life.left is not None:
            self._judge(life.left, move)
        if move.state == State.CANCELED and move.claim is None and move.job not in self.case.asked.canceled:
            self.breach("was canceled, but nobody asked for that", job=move.job)

    def amended(self, _life: Life, move: Move) -> None:
        if move.was != move.state:
            self._judge(move.was, move)

    def erased(self, _life: Life, move: Move) -> None:
        if move.job not in self.case.asked.deleted:
            self.breach(f"went from history ({move.was}), but nobody asked for that", job=move.job)

    def end(self) -> None:
        for life in self.case.lives.values():
            if life.left is not None and life.job not in self.case.asked.deleted:
                self.breach(f"went from jobs ({life.left}) and did not come to history; nobody asked for that", job=life.job)

    def _judge(self, before: str | None, move: Move) -> None:
        if (before, move.state) not in LEGAL:
            self.breach(f"went from {before} to {move.state} (move {move.seq})", job=move.job)
