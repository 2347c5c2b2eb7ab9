"""A queue as PostgreSQL shows it to workers: transactions that commit late, snapshots, positions from a sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.store.claim_replies import ClaimReply
from tenure.worker.claim.cursors import Cursors


@dataclass(eq=False)
class SimulatedJob:
    queue: str
    priority: int
    position: int
    kind: str
    visible: bool = False
    running: bool = False


@dataclass(eq=False)
class Transaction:
    xid: int
    jobs: list[SimulatedJob] = field(default_factory=list)


class SimulatedStore:
    def __init__(self) -> None:
        self.position = 5  # some jobs came and went before
        self.next_xid = 100
        self.latest_ended = 99
        self.open: list[Transaction] = []
        self.jobs: list[SimulatedJob] = []
        self.returns: dict[str, int] = {}
        self.paused: set[str] = set()

    def begin(self) -> Transaction:
        transaction = Transaction(self.next_xid)
        self.next_xid += 1
        self.open.append(transaction)
        return transaction

    def enqueue(self, transaction: Transaction, queue: str, priority: int, kind: str) -> SimulatedJob:
        self.position += 1
        job = SimulatedJob(queue, priority, self.position, kind)
        transaction.jobs.append(job)
        self.jobs.append(job)
        return job

    def commit(self, transaction: Transaction) -> None:
        for job in transaction.jobs:
            job.visible = True
        self._end(transaction)

    def roll_back(self, transaction: Transaction) -> None:
        self.jobs = [job for job in self.jobs if job not in transaction.jobs]
        self._end(transaction)

    def _end(self, transaction: Transaction) -> None:
        self.open.remove(transaction)
        self.latest_ended = max(self.latest_ended, transaction.xid)

    def requeue(self, job: SimulatedJob) -> None:
        job.running = False
        self.returns[job.queue] = self.returns.get(job.queue, 0) + 1

    def claim(self, cursors: Cursors, kinds: set[str], limit: int, now: float) -> list[SimulatedJob]:
        """One claim, as the statement does it: snapshot, xid, lanes in order, reply, commit."""
        plan = cursors.plan(now)
        xmax = self.latest_ended + 1  # of a snapshot: one past the latest that ended, not the next to be given
        xmin = min([transaction.xid for transaction in self.open if transaction.xid < xmax], default=xmax)
        own = self.begin()
        picked: list[SimulatedJob] = []
        for lane in plan.lanes:
            if lane.queue in self.paused:
                continue
            there = [
                job
                for job in self.jobs
                if job.visible
                and not job.running
                and job.kind in kinds
                and job.queue == lane.queue
                and lane.low <= job.priority <= lane.high
                and job.position >= lane.start
            ]
            there.sort(key=lambda job: (-job.priority, job.position))
            picked += there[: limit - len(picked)]
        for job in picked:
            job.running = True
        reply = ClaimReply(True, dict(self.returns), sorted(self.paused), len(picked), self.position, xmin, own.xid)
        self.commit(own)
        cursors.learn(plan, picked, limit, reply, now=now, took=0.0)
        return picked

    def first_open_position(self) -> int:
        """No cursor may be sure of anything from here on."""
        return min([job.position for transaction in self.open for job in transaction.jobs], default=self.position + 1)

    def claimable(self, queues: set[str], kinds: set[str]) -> list[SimulatedJob]:
        return [job for job in self.jobs if job.visible and not job.running and job.queue in queues and job.kind in kinds]
