"""Where to look for pending jobs without scanning the index entries of jobs that are gone.

PostgreSQL keeps the index entries of claimed jobs for as long as any old snapshot may want them, and every claim from the
front scans all of them. So a worker remembers, for each queue and priority, the first position at which there may be a
pending job, and claims from there. That is safe because of four rules:

- **late arrivals** (a transaction took its position early and committed late) are found by a sweep from the *floor*, the
  position below which every open transaction has ended, according to PostgreSQL's own snapshot.
- **requeued jobs** (crash, shutdown) keep their position, so each requeue increments the queue's `returns` counter, which
  every claim reads: the cursors of that queue go back to the start.
- **unknown priorities**: the gaps between known priorities are read from the start by every claim. They are empty, so that
  costs one index probe each; a job found there, or by the periodic survey, makes its priority known.
- **anything else** (another worker's claim that was rolled back) is found by a periodic full sweep.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol

from tenure.store.claim_replies import ClaimReply

HIGHEST, LOWEST = 100, 0

SWEEP_EVERY = 1.0
"""Seconds between sweeps from the floor while there is more work than slots: half of the promised 2 s for late arrivals.
A worker that has slots to spare sweeps with every claim: two transactions that overlap commit in any order, and the
second must not wait."""

SWEEP_SHARE = 20
"""A sweep that took longer than a plain claim is repeated after this many times its length: it never costs more than 5 %."""

PLAIN_CLAIM = 0.005
"""Seconds that any claim may take; a sweep no longer than that is not worth avoiding."""

RECENT = 0.2
"""Seconds for which the cursor of an empty lane stays: most transactions that took a position commit within it, and a job that
is urgent need not wait for the sweep while workers are busy with others."""

MOST_MARKS = 64
"""How many marks a floor keeps while a long transaction holds it down."""

FULL_SWEEP_EVERY = 30.0
"""Seconds between sweeps from the very start."""

FULL_SWEEP_SHARE = 50
"""A full sweep that took long is repeated after this many times its own length: it never costs more than 2 %."""


class Positioned(Protocol):
    """A job, as far as cursors need to know it."""

    @property
    def queue(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def position(self) -> int: ...


@dataclass(slots=True)
class Floor:
    """The position below which no job can appear any more by a late commit.

    A mark is (position, xid): everything up to `position` was taken by transactions numbered below `xid`. When the
    oldest open transaction is not older than that, they have all ended, and a later snapshot sees their jobs.
    So only a sweep, which looks from the old floor on, may raise the floor.
    """

    position: int = 0
    seen: int = 0
    """The newest position that any claim has returned, and the number of its transaction. Both only grow on one server."""
    xid: int = 0
    _marks: list[tuple[int, int]] = field(default_factory=list)

    def note(self, reply: ClaimReply) -> None:
        # The position comes from the claim before: it was read before this claim had its number, so its takers are older.
        if self.seen:
            del self._marks[MOST_MARKS - 1 :]  # a newer mark replaces the newest one
            self._marks.append((self.seen, reply.xid))
        self.seen, self.xid = reply.position, reply.xid

    def rise(self, reply: ClaimReply) -> None:
        """After a sweep: raised to the newest mark whose transactions had ended when it ran."""
        while self._marks and self._marks[0][1] <= reply.xmin:
            self.position = max(self.position, self._marks.pop(0)[0] + 1)


class Cursors:
    """Of one worker: its queues, the priorities it has seen, and where the pending jobs of each begin."""

    def __init__(self, queues: Iterable[str]) -> None:
        self.queues = list(queues)
        self._starts: dict[str, dict[int, int]] = {queue: {} for queue in self.queues}
        self._returns: dict[str, int] = {}
        self._floor = Floor()
        self._seen: deque[tuple[float, int]] = deque()
        """When each newest position was seen; the first entry is the newest one that is no longer recent."""
        self._next_sweep = 0.0
        self._next_full_sweep = 0.0
        self.returned = False
        """Jobs were requeued since the previous claim, and the last claim did not look for them yet."""

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
        """A sweep continues over several claims if the slots are filled before its end."""
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

    def learn(self, plan: Plan, claimed: Sequence[Positioned], limit: int, reply: ClaimReply, *, now: float, took: float) -> None:
        """Moves the cursors by what a claim returned and how long it took."""
        if not reply.holds:
            return  # nothing was looked at
        if reply.position < self._floor.seen or reply.xid < self._floor.xid:
            self._forget_positions()
        if plan.full:
            self._next_full_sweep = now + max(FULL_SWEEP_EVERY, FULL_SWEEP_SHARE * took)
        if plan.sweep:
            busy = len(claimed) == limit
            self._next_sweep = now + max(SWEEP_EVERY if busy else 0.0, SWEEP_SHARE * took if took > PLAIN_CLAIM else 0.0)
        furthest: dict[tuple[str, int], int] = {}
        for job in claimed:
            lane = job.queue, job.priority
            if job.position > furthest.get(lane, -1):
                furthest[lane] = job.position
        for (queue, priority), position in furthest.items():
            starts = self._starts[queue]
            starts[priority] = max(starts.get(priority, 0), position + 1)
        end = len(plan.lanes) if len(claimed) < limit else max(plan.ordinal_of(*lane) for lane in furthest)
        self._pass_exhausted(plan.lanes[:end], reply.paused, now)
        self._seen.append((now, reply.position))
        if plan.sweep:
            self._floor.rise(reply)
        self._floor.note(reply)
        self._look_again(reply, missed=reply.picked > len(claimed))

    def _look_again(self, reply: ClaimReply, *, missed: bool) -> None:
        """Goes back to the start of every queue in which jobs were requeued, or in which a locked row was not claimed."""
        self.returned = False
        for queue in self.queues:
            returns = reply.returns.get(queue, 0)
            returned = self._returns.get(queue, 0) != returns
            if missed or returned:
                self.returned |= returned
                self._returns[queue] = returns
                self.rewind(queue)

    def add_priority(self, queue: str, priority: int) -> None:
        """There are jobs of this priority, for this worker or others: from now on it is a lane."""
        self._starts[queue].setdefault(priority, 0)

    def rewind_all(self) -> None:
        """Jobs that this worker could not run may be claimable now."""
        for queue in self.queues:
            self.rewind(queue)

    def rewind(self, queue: str) -> None:
        self._starts[queue] = dict.fromkeys(self._starts[queue], 0)

    def _forget_positions(self) -> None:
        """The sequence went backwards, as after a failover to a lagging replica: all known positions are wrong."""
        self._floor = Floor()
        self._seen.clear()
        self._next_sweep = 0.0
        self.rewind_all()

    def _pass_exhausted(self, lanes: list[Lane], paused: list[str], now: float) -> None:
        """Known lanes that were read to their end now begin after the newest position that was known just before this claim:
        any other job there is not for this worker."""
        while len(self._seen) > 1 and self._seen[1][0] <= now - RECENT:
            self._seen.popleft()
        passed = self._seen[0][1] if self._seen and self._seen[0][0] <= now - RECENT else 0
        for lane in lanes:
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
        """The same plan without these queues."""
        if not queues:
            return self
        return replace(self, lanes=[lane for lane in self.lanes if lane.queue not in queues])

    def ordinal_of(self, queue: str, priority: int) -> int:
        return next(i for i, lane in enumerate(self.lanes) if lane.queue == queue and lane.low <= priority <= lane.high)

    def to_json(self) -> str:
        return json.dumps(
            [
                {"ordinal": ordinal, "queue": lane.queue, "high": lane.high, "low": lane.low, "start": lane.start}
                for ordinal, lane in enumerate(self.lanes)
            ]
        )
