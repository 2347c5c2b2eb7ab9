"""Claims, and what runs may write: nothing without the current claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.model.states import FINISHED, State
from tenure.worker.claim.cursors import Lane
from tests.properties.model.moving import Moving
from tests.properties.model.rows import MAX_CRASHES, Claim, Job, Outcome, Profile, Progress, Run


class Running(Moving):
    def may_claim(self, worker_id: str) -> bool:
        worker = self.books.workers.get(worker_id)
        return worker is not None and worker.died_at is None and worker.expires_at > self.now

    def paused(self) -> set[str]:
        return {queue.name for queue in self.books.queues.values() if queue.paused_at is not None}

    def claimable(self, profile: Profile) -> list[Job]:
        """What such a worker could run now, in the order in which it should."""
        paused = self.paused()
        found = [
            job
            for job in self.books.live.values()
            if job.state == State.PENDING and job.queue not in paused and profile.serves(job)
        ]
        return sorted(found, key=lambda job: (-job.priority, job.position))

    def claim(self, worker_id: str, profile: Profile, claim_id: str, lanes: Sequence[Lane], limit: int) -> list[Job]:
        """Gives the jobs taken: lane by lane, each from its start."""
        if not self.may_claim(worker_id):
            return []
        waiting = self.claimable(profile)
        found = [
            job
            for lane in lanes
            for job in waiting
            if job.queue == lane.queue and lane.low <= job.priority <= lane.high and job.position >= lane.start
        ]
        for job in found[:limit]:
            self.move(job, State.RUNNING)
            job.earlier_start, job.started_at = job.started_at, self.now
            job.claim_id, job.worker_id = claim_id, worker_id
            job.fence += 1
            job.attempt += 1
            lease = profile.lease(job.kind)
            job.lease_until = None if lease is None else self.now + lease
        if found:
            self.books.claims[claim_id] = Claim(claim_id, worker_id, self.now, tuple(sorted(job.id for job in found[:limit])))
        return found[:limit]

    def finish(self, outcomes: Iterable[Outcome]) -> list[tuple[str, bool, bool]]:
        return sorted(self._finish(outcome) for outcome in outcomes if self._may_finish(outcome.run))

    def _may_finish(self, run: Run) -> bool:
        return self.holds(run) and run.claim_id in self.books.claims

    def _finish(self, outcome: Outcome) -> tuple[str, bool, bool]:
        job = self.books.live[outcome.run.job_id]
        self.move(job, outcome.state)
        # The last holder's name and claim stay: they tell which run ended it.
        job.lease_until = None
        job.output = outcome.output
        job.error = outcome.error or job.error
        self.count(job, outcome.state)
        return job.id, job.id in self.watched, False

    def settle(self, outcomes: Iterable[Outcome]) -> list[tuple[str, bool]]:
        """For outcomes after which the job stays live."""
        moved = [(self.books.live[o.run.job_id], o) for o in outcomes if self.holds(o.run)]
        for job, outcome in moved:
            state, error = after_crash(job.crashes + 1, outcome) if outcome.crash else (outcome.state, outcome.error)
            self.note(job, outcome.what or "failed", held=True)
            self.move(job, state)
            self.let_go(job)
            job.run_at = None if outcome.delay is None else self.now + outcome.delay
            job.attempt -= outcome.refund or 0
            job.crashes += outcome.crash or 0
            job.error = error or job.error
            if state in (State.RETRY, State.DEAD_LETTER):
                self.count(job, state)
        self.tell({job.queue for job, _ in moved if job.state == State.PENDING})
        return sorted((job.id, job.id in self.watched) for job, _ in moved)

    def disown(self, worker_id: str, claim_ids: set[str], queues: set[str]) -> int:
        """Jobs of claims whose answer was lost are requeued at their old position."""
        lost = [job for job in self.books.live.values() if job.worker_id == worker_id and job.claim_id in claim_ids]
        for job in lost:
            self.move(job, State.PENDING)
            self.let_go(job)
            job.started_at = job.earlier_start
            job.attempt -= 1
        self.tell(queues)
        return len(lost)

    def say(self, run: Run, percent: float | None, lease: float | None) -> list[tuple[str, bool]]:
        """Progress and heartbeat."""
        if not self.holds(run):
            return []
        job = self.books.live[run.job_id]
        if lease is not None:
            job.lease_until = self.now + lease
        if percent is not None:
            self.books.progress[job.id] = Progress(job.id, job.fence, percent)
        return [(job.id, job.id in self.watched)]

    def set_output(self, run: Run, output: str) -> None:
        job = self.books.finished.get(run.job_id)
        if job is not None and job.claim_id == run.claim_id and job.output is None:
            job.output = output

    def was_settled(self, run: Run) -> bool:
        job = self.books.finished.get(run.job_id)
        return job is not None and job.claim_id == run.claim_id

    def whereabouts(self, run: Run) -> str | None:
        """Why a run is not its job's any more; None while it is."""
        if self.holds(run):
            return None
        if run.job_id in self.books.live:
            return "taken_by_another_worker"
        if run.job_id not in self.books.finished:
            return "not_found"
        state = self.books.finished[run.job_id].state
        assert state in FINISHED
        return "canceled" if state == State.CANCELED else "already_completed"


def after_crash(crashes: int, outcome: Outcome) -> tuple[str, str]:
    if crashes < MAX_CRASHES:
        return outcome.state, f"its process died: {outcome.error}"
    return State.DEAD_LETTER, f"quarantined: its process died {crashes} times while running it, the last time: {outcome.error}"
