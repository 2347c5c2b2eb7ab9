from __future__ import annotations

from tenure.chaos.invariants.case import Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import HELD, State

HELD_STATES = frozenset(map(str, HELD))


class Attempts(Rule):
    """An attempt is counted when it is granted, and given back when the run did not come to an end of its own."""

    invariant = Invariant(
        "I13",
        "attempts and crashes are counted",
        "neither exceeds its limit, and only a run that ended by itself spends an attempt",
    )

    def born(self, _life: Life, move: Move) -> None:
        if move.attempt or move.crashes:
            self.breach(f"began with {move.attempt} attempts and {move.crashes} crashes", job=move.job)

    def granted(self, life: Life, move: Move) -> None:
        if move.attempt > move.max_attempts:
            self.breach(f"was granted for attempt {move.attempt} of {move.max_attempts}", job=move.job)
        if move.attempt != life.attempt + 1 and not (move.attempt == life.attempt and move.state == State.CLAIMED):
            self.breach(f"had {life.attempt} attempts and was granted for attempt {move.attempt}", job=move.job)
        if move.crashes != life.crashes:
            self.breach(f"had {life.crashes} crashes and was granted with {move.crashes}", job=move.job)

    def moved(self, life: Life, move: Move) -> None:
        if move.was in HELD_STATES:
            self._judge_end(life, move)
        elif move.was == State.DEAD_LETTER:
            if move.attempt or move.crashes:
                self.breach(f"was replayed with {move.attempt} attempts and {move.crashes} crashes spent", job=move.job)
        elif (move.attempt, move.crashes) != (life.attempt, life.crashes):
            self.breach(f"{_went(life, move)}, but nothing ran", job=move.job)

    def settled(self, life: Life, move: Move) -> None:
        if (move.attempt, move.crashes) != (life.attempt, life.crashes):
            self.breach(_went(life, move), job=move.job)

    def _judge_end(self, life: Life, move: Move) -> None:
        """Of a run whose job stays live."""
        crashed = move.crashes - life.crashes
        most = self.case.course.max_crashes
        if crashed not in (0, 1) or (crashed and move.state not in (State.PENDING, State.DEAD_LETTER)):
            self.breach(_went(life, move), job=move.job)
        if move.crashes > most or (move.crashes == most and move.state == State.PENDING):
            self.breach(f"is {move.state} again after {move.crashes} crashes", job=move.job)
        if life.attempt - move.attempt not in _given_back(move.state, crashed=crashed > 0):
            self.breach(f"{_went(life, move)}: only a run that ended by itself spends its attempt", job=move.job)


def _given_back(state: str | None, *, crashed: bool) -> tuple[int, ...]:
    """How many attempts a move out of a run gives back."""
    if crashed or state in (State.PENDING, State.SCHEDULED):
        return (1,)
    if state == State.RUNNING:  # prefetched, and now begun
        return (0, -1)
    return (0, 1) if state == State.WAITING else (0,)


def _went(life: Life, move: Move) -> str:
    return (
        f"went from {move.was or life.left} to {move.state}, from {life.attempt} attempts and {life.crashes} crashes "
        f"to {move.attempt} and {move.crashes}"
    )
