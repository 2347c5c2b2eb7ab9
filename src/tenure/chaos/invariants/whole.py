from __future__ import annotations

from collections import Counter

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Final, Move, Run
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

ENOUGH_TRIES = 20
"""A kind of fault that was asked for so often and never done was not part of this campaign, whatever its plan says."""


class Whole(Rule):
    """A record with gaps proves nothing: whatever else is judged relies on this."""

    invariant = Invariant("I0", "the record is whole", "what was recorded is complete and agrees with itself")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._seq = -1
        self._runs = 0

    def born(self, _life: Life, move: Move) -> None:
        self._in_order(move)

    def reborn(self, _life: Life, move: Move) -> None:
        self._in_order(move)

    def unborn(self, _life: Life, move: Move) -> None:
        self._in_order(move)

    def settled(self, life: Life, move: Move) -> None:
        self._in_order(move)
        if not life.lines:
            self.breach("came to history without ever having been in jobs", job=move.job)

    def granted(self, life: Life, move: Move) -> None:
        self._follows(life, move, "jobs")

    moved = left = granted

    def erased(self, life: Life, move: Move) -> None:
        self._follows(life, move, "history")

    amended = erased

    def ran(self, life: Life | None, run: Run) -> None:
        self._runs += 1
        if life is None and not self.case.lost.touch(run.at - self.case.course.longest, run.at):
            self.breach(f"was run under fence {run.fence}, but no move of it was recorded", job=run.job)

    def stood(self, life: Life | None, final: Final) -> None:
        if life is None:
            self.breach(f"stands at the end ({final.state}), but no move of it was recorded", job=final.job)
        elif (life.state, life.fence, life.claim) != (final.state, final.fence, final.claim):
            self.breach(
                f"stands at the end as {_stand(final.state, final.fence, final.claim)}, but was last seen as "
                f"{_stand(life.state, life.fence, life.claim)}",
                job=final.job,
            )

    def end(self) -> None:
        self._judge_calls()
        self._judge_faults()
        if not self.case.lives or not self._runs:
            self.breach(f"has {len(self.case.lives)} jobs and {self._runs} lines of runs: that proves nothing")
        for life in self.case.lives.values():
            if life.relation is not None and not life.stands:
                self.breach(f"was last seen as {life.state}, but is not there at the end", job=life.job)
            if life.outcome == State.COMPLETED:
                grant = life.grant_of(life.fence)
                if grant is None or not grant.started_at:
                    self.breach(f"completed under fence {life.fence}, but no handler said that it began", job=life.job)

    def _in_order(self, move: Move) -> None:
        if move.seq <= self._seq:
            self.breach(f"has move {move.seq} after move {self._seq}", job=move.job)
        self._seq = move.seq

    def _follows(self, life: Life, move: Move, relation: str) -> None:
        self._in_order(move)
        if life.relation != relation or life.state != move.was or life.claim != move.was_claim:
            was = "nothing of it was there" if life.relation is None else f"it was {life.state} in {life.relation}"
            self.breach(f"was changed as {move.was} in {relation} (move {move.seq}), but {was}: a move is missing", job=move.job)

    def _judge_calls(self) -> None:
        for what in self.case.asked.malformed:
            self.breach(f"is not readable: {what}")
        for n in self.case.asked.twice:
            self.breach("was made twice, but numbers are given once", n=n)

    def _judge_faults(self) -> None:
        asked, done = Counter[str](), Counter[str]()
        for fault in self.case.faults:
            asked[fault.kind] += 1
            done[fault.kind] += fault.done
            if fault.ended < fault.began:
                self.breach(f"has a fault that ended before it began: {fault.kind} of {fault.target!r}")
            if fault.ended > self.case.course.healed:
                self.breach(f"was healed, and yet {fault.kind} of {fault.target!r} was still at work")
        for kind, times in asked.items():
            if times >= ENOUGH_TRIES and not done[kind]:
                self.breach(f"asked {times} times for the fault {kind}, and it was never done")


def _stand(state: str | None, fence: int, claim: str | None) -> str:
    return f"{state}, fence {fence}, {f'claim {claim}' if claim else 'no claim'}"
