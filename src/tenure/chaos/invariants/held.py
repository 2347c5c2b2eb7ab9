from __future__ import annotations

from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.lives import Grant, Life
from tenure.chaos.ledger import Run
from tenure.chaos.verdict import Invariant


class Held(Rule):
    """Claims commit asynchronously: a crash of the server may take one back after its handler has begun. The record has lost it
    as well, so its handler is one too many, and the next holder gets the same fence. That is by design, and only then."""

    invariant = Invariant(
        "I5",
        "one run for each grant",
        "what is granted under a fence is run by its holder, once, unless a crash took the grant back",
    )

    def ran(self, life: Life | None, run: Run) -> None:
        if life is None or run.what != "started":
            return
        grant = life.grant_of(run.fence)
        if self._is_of_a_lost_grant(run, grant):
            return
        if grant is None:
            if not self.case.crashes.touch(life.born_at, self.case.course.ended):
                self.breach(f"was run by worker {run.worker} under fence {run.fence}, which nobody was granted", job=run.job)
        elif grant.worker == run.worker and not grant.started_at:
            grant.started_at = run.at
        elif not self.case.crashes.touch(grant.since, grant.at):
            self.breach(_twice(grant, run), job=run.job)

    def _is_of_a_lost_grant(self, run: Run, grant: Grant | None) -> bool:
        """Granted by a primary whose standby leads now, and never received that."""
        before = grant is None or run.at < grant.at
        return before and self.case.lost.touch(run.at - self.case.course.longest, run.at)


def _twice(grant: Grant, run: Run) -> str:
    if grant.worker == run.worker:
        return f"was run twice by worker {run.worker} under fence {run.fence}"
    return f"was run by worker {run.worker} under fence {run.fence}, which worker {grant.worker} was granted"
