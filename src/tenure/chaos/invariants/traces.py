"""What the rules know of one job: by its kind, by its moves up to now, and by the steps of its workflow.

Kept small: a campaign has millions of jobs and hundreds of thousands of steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from sys import intern
from typing import ClassVar, Literal, get_args

from tenure.chaos.recorded_changes import Move, StepChange
from tenure.model.states import State

# What the name of a kind tells the checker. `tenure.chaos.jobs` and `tenure.chaos.workflows` define the kinds

ATOMIC = "atomic"
"""The kind that writes an effect and completes in one transaction."""

ORDERED = "ordered"
"""The kind that is enqueued together with an order row, in one transaction of the caller."""

IN_PROCESS = "in_process"
"""The kind that runs in a process of its own, which must be started first if none is idle."""

STUBBORN = "stubborn"
"""Kinds with this prefix ignore their cancellation; their slot is used by other jobs meanwhile."""

CHANGING = "changing"
"""Kinds with this prefix are under limits that are set, changed and removed while the campaign runs."""

REFUSED = "refused"
"""Kinds with this prefix have rows that PostgreSQL sometimes refuses to change."""

CHAINED = "chained"
"""Kinds with this prefix are links of chains, and jobs that wait for them. Only the first link is requested by a client."""

CHAIN_STARTS = "chained"
"""The kind of a first link."""

WORKFLOW = "workflow"
"""Kinds with this prefix are workflows, and jobs that they start."""

CHILD = "workflow_child"
"""The kind of the jobs that workflows start. Clients do not request it."""

_LIMITED = re.compile(r"limited_(\d+)")


@cache
def limit_of(kind: str) -> int | None:
    """How many jobs of a kind may be held at the same time, during the whole campaign."""
    found = _LIMITED.fullmatch(kind)
    return int(found[1]) if found else None


@cache
def is_claimed_in_order(kind: str) -> bool:
    """False for limited kinds, which wait until their limit has room, and for refused kinds, which are skipped."""
    return limit_of(kind) is None and not kind.startswith((CHANGING, REFUSED))


# Moves

Step = Literal[
    "inserted", "claimed", "changed", "removed", "settled", "history_changed", "history_deleted", "reinserted", "reinsert_undone"
]
"""What a move means for its job.

    inserted, reinserted   a new row in jobs; reinserted: the job had one before
    claimed                jobs: a claim that did not hold the job before
    changed                jobs: any other change
    removed                deleted from jobs: moved to history, or deleted for good
    reinsert_undone        deleted from jobs right after it was reinserted. An enqueue whose answer was lost is repeated; if the
                           job has just finished, the second row is deleted before any other transaction can see it
    settled                a new row in history
    history_changed        a change in history
    history_deleted        deleted from history
"""

STEPS: tuple[Step, ...] = get_args(Step)


class ClaimTrace:
    __slots__ = ("at", "claim_id", "ended_at", "fence", "previous_at", "started_at", "stepped_at", "until", "worker")

    def __init__(self, job: JobTrace, at: float) -> None:
        self.fence = job.fence
        self.claim_id = job.claim
        self.worker = job.worker
        self.at = at
        self.previous_at = job.changed_at
        """The time of the move before it."""
        self.started_at = 0.0
        self.ended_at = 0.0
        """When its handler recorded its start and its end; 0: it did not."""
        self.stepped_at = 0.0
        """When it recorded its last step; 0: it recorded none."""
        self.until = float("inf")
        """When the claim ended: the job was claimed again, requeued or removed."""


class JobTrace:
    __slots__ = (
        "attempt", "changed_at", "claim", "claims", "crashes", "fence", "in_final", "inserted_at", "job", "key", "kind", "lines",
        "made_by_retry", "n", "outcome", "reinserted", "relation", "removed_as", "state", "was_dead_letter", "worker",
    )  # fmt: skip

    def __init__(self, job: str) -> None:
        self.job = job
        self.n: int | None = None
        self.kind = ""
        self.key: str | None = None
        self.relation: str | None = None
        """The table of its row: jobs or history."""
        self.state: str | None = None
        self.removed_as: str | None = None
        """The state in which it was removed from jobs, until it appears in history."""
        self.claim: str | None = None
        self.worker: str | None = None
        self.fence = 0
        self.attempt = 0
        self.crashes = 0
        self.claims: list[ClaimTrace] = []
        self.outcome: str | None = None
        """The state with which it entered history. Fence, claim and worker stay those of that row."""
        self.was_dead_letter = False
        self.reinserted = False
        self.made_by_retry = False
        """Created by a retry of a finished job, not by a request."""
        self.in_final = False
        """Found among the jobs at the end."""
        self.inserted_at = 0.0
        self.changed_at = 0.0
        self.lines = 0

    def step(self, move: Move) -> Step:
        if move.relation == "history":
            if move.was is None:
                return "settled"
            return "history_deleted" if move.state is None else "history_changed"
        if move.was is None:
            return "reinserted" if self.lines else "inserted"
        if move.state is None:
            return "reinsert_undone" if self.reinserted else "removed"
        return "claimed" if move.claim is not None and move.claim != move.was_claim else "changed"

    def apply(self, step: Step, move: Move) -> None:
        self._APPLY[step](self, move)
        self.reinserted = step == "reinserted"
        self.lines += 1
        self.changed_at = move.at

    @property
    def gone(self) -> bool:
        return self.relation is None

    def claim_with(self, fence: int) -> ClaimTrace | None:
        for claim in self.claims:
            if claim.fence == fence:
                return claim
        return None

    def _inserted(self, move: Move) -> None:
        self.inserted_at, self.n, self.key, self.kind = move.at, move.n, move.key, intern(move.kind)
        self._changed(move)

    def _claimed(self, move: Move) -> None:
        self._changed(move)
        self.claims.append(ClaimTrace(self, move.at))

    def _changed(self, move: Move) -> None:
        if move.claim != self.claim:
            self._end_claim(move.at)
        self.relation = "jobs"
        self.state = move.state
        self.claim = move.claim and intern(move.claim)
        self.worker = move.worker and intern(move.worker)
        self.fence, self.attempt, self.crashes = move.fence, move.attempt, move.crashes
        if move.state == State.DEAD_LETTER:
            self.was_dead_letter = True

    def _end_claim(self, at: float) -> None:
        if self.claims and self.claims[-1].until > at:
            self.claims[-1].until = at

    def _removed(self, move: Move) -> None:
        self._end_claim(move.at)
        self.removed_as = move.was
        self.relation = self.state = None

    def _settled(self, move: Move) -> None:
        if not self.kind:  # its insertion was not recorded
            self._inserted(move)
        self.outcome = move.state and intern(move.state)
        self.removed_as = None
        self.worker = move.worker and intern(move.worker)
        self.fence, self.attempt, self.crashes = move.fence, move.attempt, move.crashes
        self._history_changed(move)

    def _history_changed(self, move: Move) -> None:
        self.relation = "history"
        self.state = move.state and intern(move.state)
        self.claim = move.claim and intern(move.claim)

    def _history_deleted(self, _move: Move) -> None:
        self.relation = self.state = None

    def _ignored(self, _move: Move) -> None:
        """A second row changes nothing as long as its insertion is undone."""

    _APPLY: ClassVar[dict[Step, Callable[[JobTrace, Move], None]]] = {
        "inserted": _inserted,
        "claimed": _claimed,
        "changed": _changed,
        "removed": _removed,
        "settled": _settled,
        "history_changed": _history_changed,
        "history_deleted": _history_deleted,
        "reinserted": _ignored,
        "reinsert_undone": _ignored,
    }


# Steps of a workflow

ENDED_STEP_STATES = frozenset({"done", "failed"})
"""The states in which the row of a step stays as it is."""

STEPS_WITH_VALUE = frozenset({"step", "transaction", "undo"})
"""Steps whose value is made by a function, which writes down what it made."""

STATUS_STEP = "status"
"""What a workflow reports about itself is stored as a step, and is not one."""


class StepTrace:
    __slots__ = ("fence", "made", "number", "state", "value", "what")

    def __init__(self, change: StepChange) -> None:
        self.number = change.number
        self.what = intern(change.what)
        self.state = change.state and intern(change.state)
        self.fence = change.fence
        self.value = change.output if isinstance(change.output, str) else ""
        self.made = False
        """The run that recorded it wrote that its step made this value."""

    @property
    def done(self) -> bool:
        return self.state == "done"

    @property
    def has_value(self) -> bool:
        return self.done and self.what in STEPS_WITH_VALUE


StepTraces = dict[str, StepTrace]
"""The steps of one workflow, by their names."""


def apply_step_change(steps: StepTraces, change: StepChange, *, deleted: bool) -> None:
    """`deleted`: the workflow itself was deleted. What it had recorded is kept, to be compared with what its runs saw."""
    if change.what == STATUS_STEP:
        return
    if change.state is not None:
        steps[intern(change.step)] = StepTrace(change)
    elif not deleted:
        steps.pop(change.step, None)
