"""Where to look for pending jobs without walking over what is gone.

PostgreSQL keeps the index entries of claimed jobs for as long as any old snapshot may want them, and every claim from the
front walks over them all. So a worker remembers, for each queue and priority, from which position on pending jobs may
stand, and claims from there. That is safe because of four rules:

- **late arrivals** (a transaction took its position early and committed late) are found by a sweep from the *floor*, the
  position below which every transaction that was under way has ended. Read by PostgreSQL's own snapshot: never a guess.
- **returned jobs** (crash, shutdown) keep their place, so each return moves the queue's `returns` counter, which every
  claim reads: the cursors of that queue go back to the start.
- **unknown priorities**: between the known priorities lie gaps, looked into from the start at every claim. They are empty,
  so that costs a probe each; a job found there, or by the survey now and then, makes its priority known.
- **all else** (another worker's claim that was rolled back) is found by a full sweep now and then.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from tenure.store.jobs import PeekedJob

HIGHEST, LOWEST = 100, 0

JobPosition = tuple[str, int, int]
"""Queue, priority and position of a job."""

SWEEP_EVERY = 1.0
"""Seconds between sweeps from the floor while there is more work than slots: half of the promised 2 s for late arrivals.
A worker that has slots to spare sweeps with every claim: two transactions that overlap commit in any order, and the
second must not wait."""

SWEEP_SHARE = 20
"""A sweep that took longer than a plain claim is repeated after so many times its length: it never costs more than 5 %."""

PLAIN_CLAIM = 0.005
"""Seconds that any claim may take; a sweep no longer than that is not worth avoiding."""

RECENT = 0.2
"""Seconds for which an empty lane is not passed by: most transactions that took a position commit within it, and a job that
is urgent need not wait for the sweep while workers are busy with others."""

MOST_MARKS = 64
"""How many marks a floor keeps while a long transaction holds it down."""

FULL_SWEEP_EVERY = 30.0
"""Seconds between sweeps from the very start."""

FULL_SWEEP_SHARE = 50
"""A full sweep that took long is repeated after so many times its own length: it never costs more than 2 %."""


@dataclass(slots=True)
class ClaimReply:
    """What a claim tells beside its jobs."""

    holds: bool
    returns: dict[str, int]
    paused: list[str]
    picked: int
    """How many rows were locked for us. One that changed in that moment is locked and yet not claimed."""
    position: int
    xmin: int
    xid: int
    limits: int = 0
    """The version of the limits, as the claim met it. With another than its worker knows, nothing was looked at."""
    peeked: list[PeekedJob] = field(default_factory=list)
    """Jobs that would be claimed, if the claim was asked for that only."""

    @staticmethod
    def read(text: str) -> ClaimReply:
        told = json.loads(text)
        peeked = [PeekedJob(*job) for job in told.get("peeked") or ()]
        return ClaimReply(**told | {"returns": told["returns"] or {}, "paused": told["paused"] or [], "peeked": peeked})


@dataclass(slots=True)
class Floor:
    """The position below which nothing can appear any more by a late commit.

    A mark is (position, xid): everything up to `position` was taken by transactions numbered below `xid`. When the
    oldest transaction still under way is no older than that, they have all ended, and whoever looks now sees their jobs.
    So only a sweep, which looks from the old floor on, may raise the floor.
    """

    position: int = 0
    seen: int = 0
    """The newest position that any claim was told, and the number of that claim's transaction. Both only grow on one server."""
    xid: int = 0
    _marks: list[tuple[int, int]] = field(default_factory=list)

    def note(self, signals: ClaimReply) -> None:
        # The position comes from the claim before: it was read before this claim had its number, so its takers are older.
        if self.seen:
            del self._marks[MOST_MARKS - 1 :]  # the newest mark gives way to a newer one
            self._marks.append((self.seen, signals.xid))
        self.seen, self.xid = signals.position, signals.xid

    def rise(self, signals: ClaimReply) -> None:
        """After a sweep: up to the newest mark whose transactions this sweep has seen the end of."""
        while self._marks and self._marks[0][1] <= signals.xmin:
            self.position = max(self.position, self._marks.pop(0)[0] + 1)


class Cursors:
    """For one worker: its queues, the priorities it has met, and where each of them begins."""

    def __init__(self, queues: Iterable[str]) -> None:
        self.queues = list(queues)
        self._starts: dict[str, dict[int, int]] = {queue: {} for queue in self.queues}
        self._returns: dict[str, int] = {}
        self._floor = Floor()
        self._seen: deque[tuple[float, int]] = deque()
        """When which newest position was known; the first one is the newest that is not recent any more."""
        self._next_sweep = 0.0
        self._next_full_sweep = 0.0
        self.returned = False
        """Jobs came back to a queue since the claim before: what was just claimed did not look for them yet."""

    def plan(self, now: float) -> Plan:
        """The lanes of the next claim, highest priority first. Queues take turns at being first among equals."""
        full = now >= self._next_full_sweep
        sweep = full or now >= self._next_sweep
        if sweep:
            self._lower(0 if full else self._floor.position)
        lanes = [lane for queue in self.queues for lane in self._lanes(queue)]
        lanes.sort(key=lambda lane: -lane.high)
        if len(self.queues) > 1:
            self.queues.append(self.queues.pop(0))
        return Plan(lanes, sweep=sweep, full=full)

    def _lower(self, ceiling: int) -> None:
        """A sweep goes on over several claims where the slots are filled before its end."""
        for starts in self._starts.values():
            for priority, start in starts.items():
                starts[priority] = min(start, ceiling)

    def _lanes(self, queue: str) -> Iterable[Lane]:
        high = HIGHEST
        for priority in sorted(self._starts[queue], reverse=True):
            if high > priority:
                yield Lane(queue, high, priority + 1, 0)
            yield Lane(queue, priority, priority, self._starts[queue][priority])
            high = priority - 1
        if high >= LOWEST:
            yield Lane(queue, high, LOWEST, 0)

    def learn(self, plan: Plan, claimed: list[JobPosition], limit: int, signals: ClaimReply, *, now: float, took: float) -> None:
        """Takes in what a claim gave, and how long it took."""
        if not signals.holds:
            return  # nothing was looked at
        if signals.position < self._floor.seen or signals.xid < self._floor.xid:
            self._forget_positions()
        if plan.full:
            self._next_full_sweep = now + max(FULL_SWEEP_EVERY, FULL_SWEEP_SHARE * took)
        if plan.sweep:
            busy = len(claimed) == limit
            self._next_sweep = now + max(SWEEP_EVERY if busy else 0.0, SWEEP_SHARE * took if took > PLAIN_CLAIM else 0.0)
        for queue, priority, position in claimed:
            starts = self._starts[queue]
            starts[priority] = max(starts.get(priority, 0), position + 1)
        self._pass_exhausted(plan, claimed, limit, signals.paused, now)
        self._seen.append((now, signals.position))
        if plan.sweep:
            self._floor.rise(signals)
        self._floor.note(signals)
        self._look_again(signals, missed=signals.picked > len(claimed))

    def _look_again(self, signals: ClaimReply, *, missed: bool) -> None:
        """Back to the start of every queue to which jobs came back, or in which one slipped away under our hands."""
        self.returned = False
        for queue in self.queues:
            returns = signals.returns.get(queue, 0)
            returned = self._returns.get(queue, 0) != returns
            if missed or returned:
                self.returned |= returned
                self._returns[queue] = returns
                self.rewind(queue)

    def meet(self, queue: str, priority: int) -> None:
        """There are jobs of this priority, ours or not: from now on it is a lane of its own."""
        self._starts[queue].setdefault(priority, 0)

    def rewind_all(self) -> None:
        """What was not for us may be now."""
        for queue in self.queues:
            self.rewind(queue)

    def rewind(self, queue: str) -> None:
        self._starts[queue] = dict.fromkeys(self._starts[queue], 0)

    def _forget_positions(self) -> None:
        """The sequence has gone back, as after a failover to a replica that lagged: what was learnt of positions is wrong."""
        self._floor = Floor()
        self._seen.clear()
        self._next_sweep = 0.0
        self.rewind_all()

    def _pass_exhausted(self, plan: Plan, claimed: list[JobPosition], limit: int, paused: list[str], now: float) -> None:
        """Known lanes that were read to their end begin after the newest position that was known a moment before this claim:
        whatever else stood there was not for us."""
        while len(self._seen) > 1 and self._seen[1][0] <= now - RECENT:
            self._seen.popleft()
        passed = self._seen[0][1] if self._seen and self._seen[0][0] <= now - RECENT else 0
        met = {(queue, priority) for queue, priority, _ in claimed}
        last = len(plan.lanes) if len(claimed) < limit else max(plan.place_of(*lane) for lane in met)
        for lane in plan.lanes[:last]:
            if lane.high == lane.low and lane.high in self._starts[lane.queue] and lane.queue not in paused:
                starts = self._starts[lane.queue]
                starts[lane.high] = max(starts[lane.high], passed + 1)


@dataclass(frozen=True, slots=True)
class Lane:
    queue: str
    high: int
    low: int
    start: int


@dataclass(frozen=True, slots=True)
class Plan:
    lanes: list[Lane]
    sweep: bool
    full: bool

    def without(self, queues: AbstractSet[str]) -> Plan:
        """The same, but for queues that are not to be looked into."""
        if not queues:
            return self
        return replace(self, lanes=[lane for lane in self.lanes if lane.queue not in queues])

    def place_of(self, queue: str, priority: int) -> int:
        return next(i for i, lane in enumerate(self.lanes) if lane.queue == queue and lane.low <= priority <= lane.high)

    def to_json(self) -> str:
        return json.dumps(
            [
                {"place": place, "queue": lane.queue, "high": lane.high, "low": lane.low, "start": lane.start}
                for place, lane in enumerate(self.lanes)
            ]
        )
