from __future__ import annotations

from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.lives import Grant, Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import State


class Fenced(Rule):
    invariant = Invariant(
        "I4", "the last grant settles", "fences grow with every grant, and what settles a job is its last grant"
    )

    def granted(self, life: Life, move: Move) -> None:
        if move.fence <= life.fence:
            self.breach(f"was granted under fence {move.fence} after fence {life.fence}", job=move.job)

    def moved(self, life: Life, move: Move) -> None:
        if move.fence != life.fence:
            self.breach(f"has fence {move.fence} after fence {life.fence}, without a grant", job=move.job)

    def settled(self, life: Life, move: Move) -> None:
        if move.claim is None and move.state == State.CANCELED:
            if move.fence != life.fence:
                self.breach(f"was canceled under fence {move.fence}, but had fence {life.fence}", job=move.job)
        elif not life.grants:
            self.breach(f"is {move.state} under fence {move.fence}, but was never granted", job=move.job)
        else:
            self._judge(life.grants[-1], life, move)

    def _judge(self, last: Grant, life: Life, move: Move) -> None:
        if move.claim != last.claim or move.worker != last.worker:
            self.breach(
                f"was settled by claim {move.claim} of worker {move.worker}, but the last grant was {_grant(last)}", job=move.job
            )
        highest = max(grant.fence for grant in life.grants)
        if move.fence != highest:
            self.breach(f"was settled under fence {move.fence}, but fence {highest} was granted", job=move.job)


def _grant(grant: Grant) -> str:
    return f"claim {grant.claim} of worker {grant.worker} under fence {grant.fence}"
