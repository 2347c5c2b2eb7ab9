"""How jobs are added: by one function, once, and one per key."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.model.states import State
from tests.properties.model.moving import Moving
from tests.properties.model.rows import Call, Job, Key, Run, digest


class ParentLost(Exception):
    """The run that enqueues a job does not hold its own any more."""


class Entering(Moving):
    def enqueue(self, calls: Iterable[Call], *, again: bool = False) -> list[tuple[str, str, bool]]:
        """Returns the calls that created no job: the id asked for, the id of the existing job, and whether its input differs."""
        met: list[tuple[str, str, bool]] = []
        fresh = list(calls)
        if again:
            met = [(call.id, call.id, False) for call in fresh if self._was_written(call.id)]
            fresh = [call for call in fresh if not self._was_written(call.id)]
        for call in fresh:
            if call.claim is not None and not self.holds(Run(call.parent or "", call.claim, "")):
                raise ParentLost
        for call in fresh:
            key = self._take_key(call)
            if key is None or key.job_id == call.id:
                self._write(call)
            else:
                met.append((call.id, key.job_id, key.digest != digest(call.input)))
        return sorted(met)

    def _was_written(self, job_id: str) -> bool:
        return job_id in self.books.live or job_id in self.books.finished

    def _take_key(self, call: Call) -> Key | None:
        """The key as it stands after the call: this job's, if it was free."""
        return None if call.key is None else self.take_key(call.kind, call.key, call.id, call.key_for or "forever", call.input)

    def take_key(self, kind: str, key: str, job_id: str, key_for: str, given: str) -> Key:
        found = self.books.keys.get((kind, key))
        if found is None or (found.job_id != job_id and self._is_free(found)):
            scope = key_for if key_for in ("live", "forever") else "window"
            until = self.now + float(key_for) if scope == "window" else None
            found = self.books.keys[kind, key] = Key(kind, key, job_id, scope, self.now, until, digest(given))
        return found

    def _is_free(self, key: Key) -> bool:
        """A window that is over does not free the key of a job that is still to be done. A dead letter is not."""
        over = key.scope == "live" or (key.expires_at is not None and key.expires_at <= self.now)
        holder = self.books.live.get(key.job_id)
        return over and (holder is None or holder.state == State.DEAD_LETTER)

    def _write(self, call: Call) -> None:
        job = Job(
            id=call.id,
            kind=call.kind,
            queue=call.queue,
            state=State.PENDING,
            enqueued_at=self.now,
            input=call.input,
            priority=50 if call.priority is None else call.priority,
            capability=call.capability,
            max_attempts=call.max_attempts or 3,
            key=call.key,
            parent_id=call.parent,
        )
        if call.delay and call.delay > 0:
            job.state, job.run_at = State.SCHEDULED, self.now + call.delay
        else:
            self.to_the_end(job)
        self.books.live[job.id] = job
