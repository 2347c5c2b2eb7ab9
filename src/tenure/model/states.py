"""The states of a job and the one table of legal moves."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    RETRY = "retry"
    DEAD_LETTER = "dead_letter"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def finished(self) -> bool:
        """In history; the state no longer changes."""
        return self in FINISHED


FINISHED = frozenset({State.COMPLETED, State.FAILED, State.CANCELED})
LIVE = frozenset(State) - FINISHED
HELD = frozenset({State.RUNNING})

# The state a job may be in when it is first written.
FIRST = frozenset({State.PENDING, State.SCHEDULED, State.BLOCKED})

_BY_A_RUN = frozenset(
    {
        State.COMPLETED,
        State.FAILED,
        State.CANCELED,
        State.RETRY,
        State.SCHEDULED,
        State.WAITING,
        State.PENDING,
        State.DEAD_LETTER,
    }
)

_BY_A_PERSON = frozenset({State.CANCELED, State.COMPLETED})
"""From any live state: `cancel()`, and `app.chains.complete()` without a worker."""

LEGAL_MOVES: dict[State, frozenset[State]] = {
    State.SCHEDULED: frozenset({State.PENDING, *_BY_A_PERSON}),
    # Failed: it waits for itself, or it is a group with a member that failed.
    State.BLOCKED: frozenset({State.PENDING, State.SCHEDULED, State.FAILED, *_BY_A_PERSON}),
    State.PENDING: frozenset({State.RUNNING, *_BY_A_PERSON}),
    State.RUNNING: _BY_A_RUN,
    State.WAITING: frozenset({State.PENDING, State.FAILED, *_BY_A_PERSON}),
    State.RETRY: frozenset({State.PENDING, *_BY_A_PERSON}),
    State.DEAD_LETTER: frozenset({State.PENDING, *_BY_A_PERSON}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELED: frozenset(),
}


def may_move(before: State, after: State) -> bool:
    return after in LEGAL_MOVES[before]
