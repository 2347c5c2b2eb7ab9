from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.kinds import in_line
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import State

SUSPECT = 2
"""Jobs with so many crashes run alone, apart from the order of the others."""

EVERY_POSITION = float("inf")


class Waiting(NamedTuple):
    position: int
    seq: int
    job: str
    since: float
    """From when on everybody could see that it is pending."""


class Lane:
    """The pending jobs of a queue and priority. Each takes this way as far as it must, and is forgotten lazily:

    unseen    not committed yet, as far as is known
    waiting   none that comes after it was granted yet
    passed    one was, then
    overdue   one was, and that is longer ago than may be

    To be passed over for a moment is in order: whoever claims leaves alone what another claim has locked.
    """

    __slots__ = ("overdue", "passed", "unseen", "waiting")

    def __init__(self) -> None:
        self.unseen: list[tuple[float, Waiting]] = []
        self.waiting: list[Waiting] = []
        self.passed: deque[tuple[float, Waiting]] = deque()
        self.overdue: list[Waiting] = []


class Order(Rule):
    invariant = Invariant(
        "I9",
        "urgent first, then first come, first granted",
        "within a queue, no job waits for long while those of lower priority, or younger ones of its own, are granted",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._late = case.course.late
        self._lanes: dict[str, dict[int, Lane]] = {}
        """By queue and priority."""
        self._pending: dict[str, int] = {}
        """By job, the move by which it became pending."""

    def born(self, _life: Life, move: Move) -> None:
        offer = None if move.n is None else self.case.asked.offers.get(move.n)
        # A caller's transaction may commit long after the row was written; the answer came after its commit.
        self._enter(move, move.at if offer is None else max(move.at, offer.ended))

    def moved(self, _life: Life, move: Move) -> None:
        if move.was != State.PENDING:
            self._enter(move, move.at)

    def left(self, _life: Life, move: Move) -> None:
        self._pending.pop(move.job, None)

    def granted(self, _life: Life, move: Move) -> None:
        self._pending.pop(move.job, None)
        if move.crashes >= SUSPECT or not in_line(move.kind):
            return
        for priority, lane in self._lanes.get(move.queue, {}).items():
            if priority >= move.priority:
                before = move.position if priority == move.priority else EVERY_POSITION
                self._show(lane, move.at)
                self._pass_over(lane, move.at, before)
                self._judge(lane, move, before)

    def _enter(self, move: Move, since: float) -> None:
        if move.state != State.PENDING or move.crashes >= SUSPECT or not in_line(move.kind):
            return
        lanes = self._lanes.setdefault(move.queue, {})
        lane = lanes.get(move.priority)
        if lane is None:
            lane = lanes[move.priority] = Lane()
        self._pending[move.job] = move.seq
        heappush(lane.unseen, (since, Waiting(move.position, move.seq, move.job, since)))

    def _show(self, lane: Lane, at: float) -> None:
        while lane.unseen and lane.unseen[0][0] <= at:
            self._keep(heappop(lane.unseen)[1], lane.waiting)

    def _pass_over(self, lane: Lane, at: float, before: float) -> None:
        while lane.waiting and lane.waiting[0].position < before:
            older = heappop(lane.waiting)
            if self._pending.get(older.job) == older.seq:
                lane.passed.append((at, older))

    def _judge(self, lane: Lane, move: Move, before: float) -> None:
        while lane.passed and self._is_late(lane.passed[0][0], move.at):
            self._keep(lane.passed.popleft()[1], lane.overdue)
        while lane.overdue and lane.overdue[0].position < before:
            older = heappop(lane.overdue)
            if self._pending.get(older.job) == older.seq and not self.case.outages.touch(older.since, move.at):
                waited = move.at - older.since
                self.breach(f"waited for {waited:.3f} s when job {move.job} was granted, which comes after it", job=older.job)

    def _is_late(self, passed: float, at: float) -> bool:
        # While a table is locked, all workers may be stuck with full slots: the lane stands still, and nobody is passed over.
        return passed + self._late < at and self.case.locks.calm(passed, at) > self._late

    def _keep(self, waiting: Waiting, heap: list[Waiting]) -> None:
        if self._pending.get(waiting.job) == waiting.seq:
            heappush(heap, waiting)
