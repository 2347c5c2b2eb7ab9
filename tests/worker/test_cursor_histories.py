"""A worker finds every job, regardless of what other sessions do: many short random histories."""

from __future__ import annotations

import math

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tenure.worker.claim.cursors import SWEEP_EVERY, Cursors
from tests.worker.simulated import SimulatedStore

QUEUES = ["mail", "maps"]
PRIORITIES = [50, 50, 50, 75]  # most jobs meet in one lane, where the faults are


class Queues(RuleBasedStateMachine):
    """Jobs come, commit late, are claimed and given back, queues pause: no worker ever loses sight of a job it could run,
    without any full sweep."""

    @initialize()
    def start(self) -> None:
        self.store = SimulatedStore()
        self.now = 10.0
        self.workers = [(Cursors(QUEUES), {"a", "b"}), (Cursors(QUEUES[:1]), {"a"})]
        for cursors, _ in self.workers:
            cursors._next_full_sweep = math.inf

    @rule(
        queue=st.sampled_from(["mail", *QUEUES]),
        priority=st.sampled_from(PRIORITIES),
        kind=st.sampled_from("ab"),
        count=st.integers(1, 3),
    )
    def enqueue(self, queue: str, priority: int, kind: str, count: int) -> None:
        transaction = self.store.begin()
        for _ in range(count):
            self.store.enqueue(transaction, queue, priority, kind)
        self.store.commit(transaction)

    @rule(queue=st.sampled_from(["mail", *QUEUES]), priority=st.sampled_from(PRIORITIES), kind=st.sampled_from("ab"))
    def enqueue_and_wait(self, queue: str, priority: int, kind: str) -> None:
        self.store.enqueue(self.store.begin(), queue, priority, kind)

    @precondition(lambda self: self.store.open)
    @rule(data=st.data(), commit=st.booleans())
    def end(self, data: st.DataObject, commit: bool) -> None:
        transaction = data.draw(st.sampled_from(self.store.open))
        (self.store.commit if commit else self.store.roll_back)(transaction)

    @rule(worker=st.integers(0, 1), limit=st.integers(1, 4))
    def claim(self, worker: int, limit: int) -> None:
        cursors, kinds = self.workers[worker]
        self.store.claim(cursors, kinds, limit, self.now)
        self.now += SWEEP_EVERY / 4

    @precondition(lambda self: any(job.running for job in self.store.jobs))
    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        self.store.requeue(data.draw(st.sampled_from([job for job in self.store.jobs if job.running])))

    @rule(worker=st.integers(0, 1))
    def survey(self, worker: int) -> None:
        cursors, _ = self.workers[worker]
        for job in self.store.jobs:
            if job.visible and not job.running and job.queue in cursors.queues:
                cursors.add_priority(job.queue, job.priority)

    @rule(queue=st.sampled_from(QUEUES))
    def pause_or_resume(self, queue: str) -> None:
        self.store.paused ^= {queue}

    @invariant()
    def the_floor_never_passes_an_open_transaction(self) -> None:
        for cursors, _ in getattr(self, "workers", ()):
            assert cursors._floor.position <= self.store.first_open_position()

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        for transaction in list(self.store.open):
            self.store.commit(transaction)
        self.store.paused.clear()
        for cursors, kinds in reversed(self.workers):
            quiet = 0
            while quiet < 2:  # a claim that hears of returned jobs is followed by one that looks for them
                self.now += SWEEP_EVERY
                quiet = 0 if self.store.claim(cursors, kinds, 4, self.now) else quiet + 1
            assert self.store.claimable(set(cursors.queues), kinds) == []


TestQueues = Queues.TestCase
# Finding a fault takes a second, making it small a minute: the seed is fixed, so shrink by hand when it is needed.
TestQueues.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, derandomize=True, database=None, phases=[Phase.generate]
)
