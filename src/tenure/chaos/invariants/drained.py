from __future__ import annotations

from tenure.chaos.invariants.attempts import HELD_STATES
from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Final
from tenure.chaos.verdict import Invariant
from tenure.model.states import FINISHED, State

OVER = frozenset(map(str, FINISHED | {State.DEAD_LETTER}))


class Drained(Rule):
    invariant = Invariant(
        "I14", "everything comes to an end", "once healed, all work is done, and nothing is held by one who is not alive"
    )

    def stood(self, _life: Life | None, final: Final) -> None:
        if final.state in OVER:
            return
        self.breach(f"is still {final.state}", job=final.job)
        if final.state in HELD_STATES and (final.lease_left is None or final.lease_left <= 0):
            self.breach(f"is held by worker {final.worker}, whose lease is over", job=final.job)

    def end(self) -> None:
        if not self.case.course.drained:
            self.breach("ended before all work was done")


class Repaired(Rule):
    invariant = Invariant(
        "I23", "history is repaired", "once healed, today has its partition, and no job that finished today is in the default one"
    )

    def end(self) -> None:
        if not self.case.course.repaired:
            self.breach("ended, and the partition of history for today was missing, or jobs were in the default one")
