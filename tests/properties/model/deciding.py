"""What people decide: cancel, retry, replay, delete, pause."""

from __future__ import annotations

from collections.abc import Collection

from tenure.model.states import State
from tests.properties.model.entering import Entering
from tests.properties.model.rows import Call, Job

CANCELED = "canceled by a person"

Ended = tuple[str, bool, bool, bool, bool, str, str | None]
"""As the statements that cancel and delete answer for one job."""


class Deciding(Entering):
    def cancel(self, ids: Collection[str], states: Collection[str] | None = None) -> list[Ended]:
        """Gives (id, canceled, ran, watched, dependants, kind, undoing) of those that were live, and in one of these states."""
        meant = [self.books.live[i] for i in ids if i in self.books.live]
        meant = [job for job in meant if states is None or job.state in states]
        return sorted(self._cancel(job) for job in meant)

    def _cancel(self, job: Job) -> Ended:
        ran = job.held
        if ran:
            self.note(job, "canceled", held=True)
        else:
            self.books.incidents.append((job.id, "canceled", None, None, None))
        self.move(job, State.CANCELED)
        # Of the holder only the name stays: it was not that claim that ended the job.
        job.claim_id = job.lease_until = None
        job.error = CANCELED
        self.count(job, "canceled")
        return job.id, True, ran, job.id in self.watched, False, job.kind, None

    def retry(self, job_id: str) -> list[tuple[str, bool, str, str, str | None]]:
        """Gives the state it was in, whether it was moved, its queue and kind, and the job that has its key instead."""
        job = self.books.live.get(job_id)
        if job is None:
            return []
        before = job.state
        if not job.waits and before != State.DEAD_LETTER:
            return [(before, False, job.queue, job.kind, None)]
        if before == State.DEAD_LETTER:
            if (holder := self._key_holder(job)) is not None:
                return [(before, False, job.queue, job.kind, holder)]
            job.attempt, attempt = 0, job.attempt
            job.crashes = 0
        else:
            attempt = job.attempt
        self.books.incidents.append((job.id, "retried", attempt, job.fence, None))
        self._now(job)
        return [(before, True, job.queue, job.kind, None)]

    def _key_holder(self, job: Job) -> str | None:
        """A dead letter takes its key again; gives the job that has it instead."""
        if job.key is None:
            return None
        holder = self.take_key(job.kind, job.key, job.id, "live", job.input).job_id
        return None if holder == job.id else holder

    def _now(self, job: Job) -> None:
        self.move(job, State.PENDING)
        self.to_the_end(job)
        job.run_at = None

    def retry_finished(self, job_id: str, new_id: str) -> list[tuple[str, str, str, bool]]:
        old = self.books.finished.get(job_id)
        if old is None:
            return []
        met = self.enqueue(
            [
                Call(
                    id=new_id,
                    kind=old.kind,
                    queue=old.queue,
                    input=old.input,
                    priority=old.priority,
                    capability=old.capability,
                    max_attempts=old.max_attempts,
                    key=f"retry of {old.id}",
                    key_for="live",
                )
            ]
        )
        if met:
            return [(old.queue, old.kind, met[0][1], True)]
        self.books.incidents.append((old.id, "retried", None, None, None))
        return [(old.queue, old.kind, new_id, False)]

    def replay(
        self, ids: Collection[str], new_input: str | None, priority: int | None
    ) -> list[tuple[str, str, bool, str, str | None]]:
        """Gives (id, queue, moved, kind, the job that has its key instead) of the dead letters among them."""
        dead = [self.books.live[i] for i in sorted(ids) if i in self.books.live]
        dead = [job for job in dead if job.state == State.DEAD_LETTER]
        told = []
        for job in dead:
            holder = self._key_holder(job)
            if holder is None:
                self.note(job, "replayed", held=False)
                job.attempt = job.crashes = 0
                job.input = new_input or job.input
                job.priority = job.priority if priority is None else priority
                self._now(job)
            told.append((job.id, job.queue, holder is None, job.kind, holder))
        return told

    def delete(self, ids: Collection[str], *, force: bool) -> list[Ended]:
        """Gives (id, gone, ran, watched, dependants, kind, undoing). Without force nothing goes while one of them runs."""
        live = {i: self.books.live[i] for i in ids if i in self.books.live}
        refused = not force and any(job.held for job in live.values())
        if refused:
            return sorted((i, False, job.held, False, False, job.kind, None) for i, job in live.items())
        gone = live | {i: self.books.finished[i] for i in ids if i in self.books.finished}
        answer = sorted((i, True, i in live and job.held, i in self.watched, False, job.kind, None) for i, job in gone.items())
        for job in gone.values():
            self._forget(job)
        return answer

    def _forget(self, job: Job) -> None:
        self.books.live.pop(job.id, None)
        self.books.finished.pop(job.id, None)
        self.books.progress.pop(job.id, None)
        self.watched.discard(job.id)
        self.books.incidents = [row for row in self.books.incidents if row[0] != job.id]
        place = (job.kind, job.key or "")
        if place in self.books.keys and self.books.keys[place].job_id == job.id:
            del self.books.keys[place]

    def pause(self, name: str) -> None:
        queue = self.queue(name)
        queue.paused_at = self.now if queue.paused_at is None else queue.paused_at

    def resume(self, name: str) -> list[tuple[str]]:
        queue = self.books.queues.get(name)
        if queue is None or queue.paused_at is None:
            return []
        queue.paused_at = None
        queue.returns += 1
        return [(name,)]
