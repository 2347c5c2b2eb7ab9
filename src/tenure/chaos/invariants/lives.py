"""What the record says of one job so far, kept small: a campaign has millions."""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import ClassVar, Literal, get_args

from tenure.chaos.ledger import Move
from tenure.model.states import State

Step = Literal["born", "granted", "moved", "left", "settled", "amended", "erased", "reborn", "unborn"]
"""What a move is in a job's life.

    born, reborn   a new row in jobs; reborn: the job had one before
    granted        jobs: a claim that did not hold it before
    moved          jobs: any other change
    left           went from jobs, to history or for good
    unborn         went from jobs right after it was reborn. An enqueue whose answer was lost is repeated; when the job has
                   finished just then, its second coming is taken back before anybody sees it
    settled        a new row in history
    amended        a change in history
    erased         went from history
"""

STEPS: tuple[Step, ...] = get_args(Step)


class Grant:
    __slots__ = ("at", "claim", "ended_at", "fence", "since", "started_at", "until", "worker")

    def __init__(self, life: Life, at: float) -> None:
        self.fence = life.fence
        self.claim = life.claim
        self.worker = life.worker
        self.at = at
        self.since = life.at
        """When the move before it was made."""
        self.started_at = 0.0
        self.ended_at = 0.0
        """When its handler said that it began, and that it ended; 0: it did not."""
        self.until = float("inf")
        """When the job was moved on."""


class Life:
    __slots__ = (
        "at", "attempt", "born_at", "claim", "crashes", "fence", "grants", "job", "key", "kind", "left", "lines", "n", "outcome",
        "reborn", "relation", "retried", "stands", "state", "was_dead", "worker",
    )  # fmt: skip

    def __init__(self, job: str) -> None:
        self.job = job
        self.n: int | None = None
        self.kind = ""
        self.key: str | None = None
        self.relation: str | None = None
        """Where its row stands."""
        self.state: str | None = None
        self.left: str | None = None
        """The state in which it left jobs, as long as it has not come to history."""
        self.claim: str | None = None
        self.worker: str | None = None
        self.fence = 0
        self.attempt = 0
        self.crashes = 0
        self.grants: list[Grant] = []
        self.outcome: str | None = None
        """The state with which it came to history. Fence, claim and worker stay those of that row."""
        self.was_dead = False
        self.reborn = False
        self.retried = False
        """Made of a finished job, not of an offer."""
        self.stands = False
        """Found among the jobs at the end."""
        self.born_at = 0.0
        self.at = 0.0
        self.lines = 0

    def step(self, move: Move) -> Step:
        if move.relation == "history":
            if move.was is None:
                return "settled"
            return "erased" if move.state is None else "amended"
        if move.was is None:
            return "reborn" if self.lines else "born"
        if move.state is None:
            return "unborn" if self.reborn else "left"
        return "granted" if move.claim is not None and move.claim != move.was_claim else "moved"

    def take(self, step: Step, move: Move) -> None:
        self._TAKE[step](self, move)
        self.reborn = step == "reborn"
        self.lines += 1
        self.at = move.at

    def _born(self, move: Move) -> None:
        self.born_at, self.n, self.key, self.kind = move.at, move.n, move.key, intern(move.kind)
        self._moved(move)

    def _granted(self, move: Move) -> None:
        self._moved(move)
        self.grants.append(Grant(self, move.at))

    def _moved(self, move: Move) -> None:
        if move.claim != self.claim:
            self._end_grant(move.at)
        self.relation = "jobs"
        self.state = move.state
        self.claim = move.claim and intern(move.claim)
        self.worker = move.worker and intern(move.worker)
        self.fence, self.attempt, self.crashes = move.fence, move.attempt, move.crashes
        if move.state == State.DEAD_LETTER:
            self.was_dead = True

    def _end_grant(self, at: float) -> None:
        if self.grants and self.grants[-1].until > at:
            self.grants[-1].until = at

    def _left(self, move: Move) -> None:
        self._end_grant(move.at)
        self.left = move.was
        self.relation = self.state = None

    def _settled(self, move: Move) -> None:
        if not self.kind:  # its beginning was not recorded
            self._born(move)
        self.outcome = move.state and intern(move.state)
        self.left = None
        self.worker = move.worker and intern(move.worker)
        self.fence, self.attempt, self.crashes = move.fence, move.attempt, move.crashes
        self._amended(move)

    def _amended(self, move: Move) -> None:
        self.relation = "history"
        self.state = move.state and intern(move.state)
        self.claim = move.claim and intern(move.claim)

    def _erased(self, _move: Move) -> None:
        self.relation = self.state = None

    def _ignored(self, _move: Move) -> None:
        """A second coming changes nothing, as long as it is taken back."""

    _TAKE: ClassVar[dict[Step, Callable[[Life, Move], None]]] = {
        "born": _born,
        "granted": _granted,
        "moved": _moved,
        "left": _left,
        "settled": _settled,
        "amended": _amended,
        "erased": _erased,
        "reborn": _ignored,
        "unborn": _ignored,
    }

    @property
    def gone(self) -> bool:
        return self.relation is None

    def grant_of(self, fence: int) -> Grant | None:
        for grant in self.grants:
            if grant.fence == fence:
                return grant
        return None
