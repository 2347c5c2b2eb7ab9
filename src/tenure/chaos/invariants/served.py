from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.kinds import CHANGING, REFUSED, in_line, limit_of
from tenure.chaos.invariants.lives import Life
from tenure.chaos.invariants.order import SUSPECT
from tenure.chaos.ledger import LimitChange, Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

PATIENCE = 10.0
"""Seconds, apart from faults, for which a job may wait though it could be granted. In calm it is two."""

FEW_SUSPECTS = 2
OF_SUSPECTS = 45.0
"""Jobs that were in two crashes run one at a time, in a process that is started for them."""

ANY_NUMBER = 1 << 62

LEARNT = 90.0
"""Seconds after which all workers have learnt of a limit that was changed, and all jobs have been assigned to it."""


class Line:
    """Jobs that wait for the same reason, and since when all of them can be granted."""

    __slots__ = ("few", "free_since", "patience", "waiting")

    def __init__(self, few: int, patience: float = PATIENCE) -> None:
        self.few = few
        self.patience = patience
        self.waiting: dict[str, float] = {}
        """By job: since when it is known to be pending."""
        self.free_since = 0.0

    @property
    def crowded(self) -> bool:
        return len(self.waiting) > self.few


class Limited:
    """The jobs of a kind that is under a limit of its own."""

    __slots__ = ("changed_at", "held", "line", "most", "rate")

    def __init__(self, most: int | None) -> None:
        self.line = Line(ANY_NUMBER)
        self.held: set[str] = set()
        self.most = most
        self.rate = False
        self.changed_at = 0.0

    @property
    def full(self) -> bool:
        return self.rate or (self.most is not None and len(self.held) >= self.most)


class Served(Rule):
    invariant = Invariant(
        "I21",
        "no job waits that could run",
        "a pending job is granted soon if there are slots for all that wait and its limit has room",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._open = Line(case.course.few)
        self._suspects = Line(FEW_SUSPECTS, OF_SUSPECTS)
        self._limited: dict[str, Limited] = {}
        self._changes = iter(case.limits)
        self._next: LimitChange | None = next(self._changes, None)

    def born(self, _life: Life, move: Move) -> None:
        offer = None if move.n is None else self.case.asked.offers.get(move.n)
        # A caller's transaction may commit long after the row was written; the answer came after its commit.
        self._enter(move, move.at if offer is None else max(move.at, offer.ended))

    def moved(self, _life: Life, move: Move) -> None:
        self._release(move)
        if move.was != State.PENDING:
            self._enter(move, move.at)
        elif move.state != State.PENDING:
            self._leave(move)

    def left(self, _life: Life, move: Move) -> None:
        self._release(move)
        self._leave(move)

    def granted(self, _life: Life, move: Move) -> None:
        self._learn(move.at)
        self._leave(move)
        limited = self._limited_of(move.kind)
        if limited is not None:
            limited.held.add(move.job)
            if limited.full:
                self._close(limited, move.at)

    def end(self) -> None:
        ended = self.case.course.ended
        self._learn(ended)
        for line in (self._open, self._suspects, *self._with_room()):
            if not line.crowded:
                for job, since in line.waiting.items():
                    self._judge(line, job, since, ended)

    # Where a job waits

    def _line_of(self, move: Move) -> Line | None:
        if move.crashes >= SUSPECT:
            return self._suspects
        limited = self._limited_of(move.kind)
        if limited is not None:
            return limited.line
        return self._open if in_line(move.kind) or move.kind.startswith(REFUSED) else None

    def _limited_of(self, kind: str) -> Limited | None:
        if limit_of(kind) is None and not kind.startswith(CHANGING):
            return None
        limited = self._limited.get(kind)
        if limited is None:
            limited = self._limited[kind] = Limited(limit_of(kind))
        return limited

    def _enter(self, move: Move, since: float) -> None:
        line = self._line_of(move) if move.state == State.PENDING else None
        if line is None:
            return
        if line is self._open and len(line.waiting) == line.few:
            for other in (self._open, self._suspects, *self._with_room()):
                self._judge_oldest(other, move.at)
        line.waiting[move.job] = since

    def _leave(self, move: Move) -> None:
        limited = self._limited_of(move.kind)
        for line in (self._suspects, self._open if limited is None else limited.line):
            if move.job in line.waiting:
                if line.crowded:
                    line.free_since = move.at
                elif line is self._suspects or limited is None or not limited.full:
                    self._judge(line, move.job, line.waiting[move.job], move.at)
                del line.waiting[move.job]

    # Limits

    def _with_room(self) -> Iterator[Line]:
        return (limited.line for limited in self._limited.values() if not limited.full)

    def _learn(self, at: float) -> None:
        while self._next is not None and self._next.at <= at:
            kind = self._next.name.removeprefix("kind:")
            limited = self._limited_of(kind) if kind.startswith(CHANGING) else None
            if limited is not None:
                limited.most, limited.rate, limited.changed_at = self._next.concurrency, self._next.rate, self._next.at
            self._next = next(self._changes, None)

    def _release(self, move: Move) -> None:
        limited = self._limited_of(move.kind)
        if limited is None or move.job not in limited.held or (move.claim is not None and move.state is not None):
            return
        if limited.full:
            limited.line.free_since = move.at
        limited.held.discard(move.job)

    def _close(self, limited: Limited, at: float) -> None:
        self._judge_oldest(limited.line, at)
        limited.line.free_since = at

    # Judging

    def _judge_oldest(self, line: Line, at: float) -> None:
        for job, since in islice(line.waiting.items(), 3):
            self._judge(line, job, since, at)

    def _judge(self, line: Line, job: str, since: float, at: float) -> None:
        begin = max(since, line.free_since, self._open.free_since)
        if at - begin <= line.patience or not self._open.few or self._open.crowded:
            return
        kind = self.case.lives[job].kind
        limited = self._limited.get(kind)
        if limited is not None and limited.changed_at:
            begin = max(begin, limited.changed_at + LEARNT)
        waited = self.case.unrest.calm(begin, at)
        if waited > line.patience and not (kind.startswith(REFUSED) and self.case.refusals.touch(begin, at)):
            self.breach(f"waited for {waited:.1f} s, apart from faults, though it could have been granted", job=job)
