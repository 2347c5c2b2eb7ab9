"""What every part of the model uses to move a job."""

from __future__ import annotations

from collections.abc import Collection

from tenure.model.states import FINISHED, State, may_move
from tests.properties.model.rows import Books, Job, Queue, Run

POSITIONS = {State.SCHEDULED: 0, State.RETRY: 0, State.DEAD_LETTER: -1}
"""Of jobs without a place in their queue."""


class Moving:
    """Knows the books, and moves jobs in them as `model/states.py` allows."""

    def __init__(self, now: float) -> None:
        self.books = Books(now)
        self.watched: set[str] = set()

    @property
    def now(self) -> float:
        return self.books.now

    def is_held_under(self, claim_id: str) -> bool:
        return any(job.claim_id == claim_id for job in self.books.live.values())

    def forget_claims(self, worker_id: str, current: Collection[str] = ()) -> None:
        """The rows of its claims go under which nothing is held, but for the current ones."""
        ended = [claim.id for claim in self.books.claims.values() if claim.worker_id == worker_id and claim.id not in current]
        for claim_id in ended:
            if not self.is_held_under(claim_id):
                del self.books.claims[claim_id]

    def holds(self, run: Run) -> bool:
        job = self.books.live.get(run.job_id)
        return job is not None and job.claim_id == run.claim_id

    def move(self, job: Job, state: str) -> None:
        assert may_move(State(job.state), State(state)), f"{job.state} -> {state}"
        job.state = State(state)
        job.position = POSITIONS.get(job.state, job.position)
        if state in FINISHED:
            job.finished_at = self.now
            self.books.finished[job.id] = self.books.live.pop(job.id)

    def let_go(self, job: Job) -> None:
        """No worker holds it any more."""
        job.claim_id = job.worker_id = job.lease_until = None

    def to_the_end(self, job: Job) -> None:
        """Pending, behind all others of its priority."""
        self.books.position += 1
        job.position = self.books.position

    def tell(self, queues: set[str]) -> None:
        """Workers look again below their cursors."""
        for name in queues:
            self.queue(name).returns += 1

    def queue(self, name: str) -> Queue:
        return self.books.queues.setdefault(name, Queue(name))

    def note(self, job: Job, what: str, *, held: bool) -> None:
        self.books.incidents.append((job.id, what, job.attempt, job.fence, job.worker_id if held else None))

    def count(self, job: Job, what: str) -> None:
        place = (job.queue, job.kind, what)
        self.books.settled[place] = self.books.settled.get(place, 0) + 1
