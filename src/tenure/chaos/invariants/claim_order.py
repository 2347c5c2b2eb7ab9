"""Which pending jobs are claimed, and when: I9 priority and FIFO order, I19 limits, I21 no job waits without a reason."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from tenure.chaos.invariants.rule import Case, Rule
from tenure.chaos.invariants.traces import CHANGING, REFUSED, JobTrace, is_claimed_in_order, limit_of
from tenure.chaos.recorded_changes import LimitChange, Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import State
from tenure.store.workers import SUSPECT_CRASHES

EVERY_POSITION = float("inf")

MAX_WAIT = 10.0
"""Seconds, not counting faults, for which a job may wait although it could be claimed. Without faults it is two."""

FEW_SUSPECTS = 2
MAX_WAIT_OF_SUSPECTS = 45.0
"""Jobs that were in two crashes run one at a time, in a process that is started for them."""

ANY_NUMBER = 1 << 62

LIMIT_CHANGE_TIME = 90.0
"""Seconds after which all workers use a changed limit, and all jobs have been assigned to it."""


def _visible_since(case: Case, move: Move) -> float:
    # A caller's transaction may commit long after the row was written; the answer came after its commit.
    request = None if move.n is None else case.calls.requests.get(move.n)
    return move.at if request is None else max(move.at, request.ended)


# I9


class PendingJob(NamedTuple):
    position: int
    seq: int
    job: str
    since: float
    """From when on every worker could see that it is pending."""


class PendingLane:
    """The pending jobs of a queue and priority. Each moves along these stages as far as needed, and is dropped lazily:

    unseen    not known to be committed yet
    waiting   no job behind it was claimed yet
    passed    a job behind it was claimed, at the time that is kept with it
    overdue   a job behind it was claimed, longer ago than is allowed

    Being passed for a short time is normal: a claim skips jobs that another claim has locked.
    """

    __slots__ = ("overdue", "passed", "unseen", "waiting")

    def __init__(self) -> None:
        self.unseen: list[tuple[float, PendingJob]] = []
        self.waiting: list[PendingJob] = []
        self.passed: deque[tuple[float, PendingJob]] = deque()
        self.overdue: list[PendingJob] = []


class ClaimOrder(Rule):
    invariant = Invariant(
        "I9",
        "higher priority first, then FIFO",
        "in a queue, no job waits long while jobs of lower priority, or newer jobs of the same priority, are claimed",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._late = case.campaign.late
        self._lanes: dict[str, dict[int, PendingLane]] = {}
        """By queue and priority."""
        self._pending: dict[str, int] = {}
        """By job, the move by which it became pending."""

    def on_inserted(self, _job: JobTrace, move: Move) -> None:
        self._enter(move, _visible_since(self.case, move))

    def on_changed(self, _job: JobTrace, move: Move) -> None:
        # Also if it was pending: it has another position now.
        self._enter(move, move.at)

    def on_removed(self, _job: JobTrace, move: Move) -> None:
        self._pending.pop(move.job, None)

    def on_claimed(self, _job: JobTrace, move: Move) -> None:
        self._pending.pop(move.job, None)
        if move.crashes >= SUSPECT_CRASHES or not is_claimed_in_order(move.kind):
            return
        for priority, lane in self._lanes.get(move.queue, {}).items():
            if priority >= move.priority:
                before = move.position if priority == move.priority else EVERY_POSITION
                self._show(lane, move.at)
                self._pass(lane, move.at, before)
                self._check(lane, move, before)

    def _enter(self, move: Move, since: float) -> None:
        if move.state != State.PENDING or move.crashes >= SUSPECT_CRASHES or not is_claimed_in_order(move.kind):
            return
        lanes = self._lanes.setdefault(move.queue, {})
        lane = lanes.get(move.priority)
        if lane is None:
            lane = lanes[move.priority] = PendingLane()
        self._pending[move.job] = move.seq
        heappush(lane.unseen, (since, PendingJob(move.position, move.seq, move.job, since)))

    def _show(self, lane: PendingLane, at: float) -> None:
        while lane.unseen and lane.unseen[0][0] <= at:
            self._keep(heappop(lane.unseen)[1], lane.waiting)

    def _pass(self, lane: PendingLane, at: float, before: float) -> None:
        while lane.waiting and lane.waiting[0].position < before:
            older = heappop(lane.waiting)
            if self._pending.get(older.job) == older.seq:
                lane.passed.append((at, older))

    def _check(self, lane: PendingLane, move: Move, before: float) -> None:
        while lane.passed and self._is_late(lane.passed[0][0], move.at):
            self._keep(lane.passed.popleft()[1], lane.overdue)
        while lane.overdue and lane.overdue[0].position < before:
            older = heappop(lane.overdue)
            if self._pending.get(older.job) == older.seq and not self.case.outages.overlap(older.since, move.at):
                waited = move.at - older.since
                self.report(f"had waited {waited:.3f} s when job {move.job}, which is behind it, was claimed", job=older.job)

    def _is_late(self, passed: float, at: float) -> bool:
        # While a table is locked, all workers may be stuck with full slots: no job is claimed, and none is passed.
        return passed + self._late < at and self.case.locks.seconds_outside(passed, at) > self._late

    def _keep(self, job: PendingJob, heap: list[PendingJob]) -> None:
        if self._pending.get(job.job) == job.seq:
            heappush(heap, job)


# I19


class LimitsKept(Rule):
    """What makes room is recorded before what takes it: a claim under a limit counts only what was committed before it. So the
    moves need not be in the order of commits for this rule. Such claims are durable: no crash of the server undoes one."""

    invariant = Invariant("I19", "limits are never exceeded", "no more jobs of a kind are held at once than its limit allows")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._held: dict[str, set[str]] = defaultdict(set)

    def on_claimed(self, _job: JobTrace, move: Move) -> None:
        limit = limit_of(move.kind)
        if limit is None:
            return
        held = self._held[move.kind]
        held.add(move.job)
        if len(held) > limit:
            others = ", ".join(sorted(held - {move.job})[:limit])
            what = f"was claimed by worker {move.worker} in addition to {others}, but the limit is {limit}"
            self.report(what, job=move.job)

    def on_changed(self, _job: JobTrace, move: Move) -> None:
        if move.claim is None and move.kind in self._held:
            self._held[move.kind].discard(move.job)

    def on_removed(self, _job: JobTrace, move: Move) -> None:
        if move.kind in self._held:
            self._held[move.kind].discard(move.job)


# I21


class WaitingLine:
    """Jobs that wait for the same reason, and since when all of them can be claimed."""

    __slots__ = ("free_since", "free_slots", "max_wait", "waiting")

    def __init__(self, free_slots: int, max_wait: float = MAX_WAIT) -> None:
        self.free_slots = free_slots
        self.max_wait = max_wait
        self.waiting: dict[str, float] = {}
        """By job: since when it is known to be pending."""
        self.free_since = 0.0

    @property
    def crowded(self) -> bool:
        return len(self.waiting) > self.free_slots


class LimitedKind:
    """The jobs of a kind that has a limit of its own."""

    __slots__ = ("changed_at", "concurrency", "held", "line", "rate")

    def __init__(self, concurrency: int | None) -> None:
        self.line = WaitingLine(ANY_NUMBER)
        self.held: set[str] = set()
        self.concurrency = concurrency
        self.rate = False
        self.changed_at = 0.0

    @property
    def full(self) -> bool:
        return self.rate or (self.concurrency is not None and len(self.held) >= self.concurrency)


class NoNeedlessWait(Rule):
    invariant = Invariant(
        "I21",
        "no job waits without a reason",
        "a pending job is claimed soon if there are slots for all waiting jobs and its limit has room",
    )

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._unlimited = WaitingLine(case.campaign.free_slots)
        self._suspects = WaitingLine(FEW_SUSPECTS, MAX_WAIT_OF_SUSPECTS)
        self._limited: dict[str, LimitedKind] = {}
        self._changes = iter(case.limits)
        self._next: LimitChange | None = next(self._changes, None)

    def on_inserted(self, _job: JobTrace, move: Move) -> None:
        self._enter(move, _visible_since(self.case, move))

    def on_changed(self, _job: JobTrace, move: Move) -> None:
        self._release(move)
        if move.was != State.PENDING:
            self._enter(move, move.at)
        elif move.state != State.PENDING:
            self._leave(move)

    def on_removed(self, _job: JobTrace, move: Move) -> None:
        self._release(move)
        self._leave(move)

    def on_claimed(self, _job: JobTrace, move: Move) -> None:
        self._apply_limit_changes(move.at)
        self._leave(move)
        limited = self._limited_kind(move.kind)
        if limited is not None:
            limited.held.add(move.job)
            if limited.full:
                self._close(limited, move.at)

    def at_end(self) -> None:
        ended = self.case.campaign.ended
        self._apply_limit_changes(ended)
        for line in (self._unlimited, self._suspects, *self._with_room()):
            if not line.crowded:
                for job_id, since in line.waiting.items():
                    self._check(line, job_id, since, ended)

    # Where a job waits

    def _line_of(self, move: Move) -> WaitingLine | None:
        if move.crashes >= SUSPECT_CRASHES:
            return self._suspects
        limited = self._limited_kind(move.kind)
        if limited is not None:
            return limited.line
        return self._unlimited if is_claimed_in_order(move.kind) or move.kind.startswith(REFUSED) else None

    def _limited_kind(self, kind: str) -> LimitedKind | None:
        if limit_of(kind) is None and not kind.startswith(CHANGING):
            return None
        limited = self._limited.get(kind)
        if limited is None:
            limited = self._limited[kind] = LimitedKind(limit_of(kind))
        return limited

    def _enter(self, move: Move, since: float) -> None:
        line = self._line_of(move) if move.state == State.PENDING else None
        if line is None:
            return
        if line is self._unlimited and len(line.waiting) == line.free_slots:
            for other in (self._unlimited, self._suspects, *self._with_room()):
                self._check_oldest(other, move.at)
        line.waiting[move.job] = since

    def _leave(self, move: Move) -> None:
        limited = self._limited_kind(move.kind)
        for line in (self._suspects, self._unlimited if limited is None else limited.line):
            if move.job in line.waiting:
                if line.crowded:
                    line.free_since = move.at
                elif line is self._suspects or limited is None or not limited.full:
                    self._check(line, move.job, line.waiting[move.job], move.at)
                del line.waiting[move.job]

    # Limits

    def _with_room(self) -> Iterator[WaitingLine]:
        return (limited.line for limited in self._limited.values() if not limited.full)

    def _apply_limit_changes(self, at: float) -> None:
        while self._next is not None and self._next.at <= at:
            kind = self._next.name.removeprefix("kind:")
            limited = self._limited_kind(kind) if kind.startswith(CHANGING) else None
            if limited is not None:
                limited.concurrency, limited.rate, limited.changed_at = self._next.concurrency, self._next.rate, self._next.at
            self._next = next(self._changes, None)

    def _release(self, move: Move) -> None:
        limited = self._limited_kind(move.kind)
        if limited is None or move.job not in limited.held or (move.claim is not None and move.state is not None):
            return
        if limited.full:
            limited.line.free_since = move.at
        limited.held.discard(move.job)

    def _close(self, limited: LimitedKind, at: float) -> None:
        self._check_oldest(limited.line, at)
        limited.line.free_since = at

    # Checks

    def _check_oldest(self, line: WaitingLine, at: float) -> None:
        for job_id, since in islice(line.waiting.items(), 3):
            self._check(line, job_id, since, at)

    def _check(self, line: WaitingLine, job_id: str, since: float, at: float) -> None:
        begin = max(since, line.free_since, self._unlimited.free_since)
        if at - begin <= line.max_wait or not self._unlimited.free_slots or self._unlimited.crowded:
            return
        kind = self.case.jobs[job_id].kind
        limited = self._limited.get(kind)
        if limited is not None and limited.changed_at:
            begin = max(begin, limited.changed_at + LIMIT_CHANGE_TIME)
        waited = self.case.disturbed.seconds_outside(begin, at)
        if waited > line.max_wait and not (kind.startswith(REFUSED) and self.case.refusals.overlap(begin, at)):
            self.report(f"waited {waited:.1f} s, not counting faults, although it could have been claimed", job=job_id)
