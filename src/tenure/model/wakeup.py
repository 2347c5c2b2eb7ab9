"""What processes notify each other of. The text of each NOTIFY is written and read here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Self
from uuid import UUID

LONGEST_PAYLOAD = 7999
"""In bytes: the limit of pg_notify."""

MOST_NAMED = 20
"""Lost jobs that are named one by one. If there are more, every run is checked."""


class Topic(StrEnum):
    """The first word of the text. People send `jobs <queue>` and `due` with psql, so these two must stay as they are."""

    JOBS = "jobs"
    DUE = "due"
    ENDED = "ended"
    PROGRESS = "progress"
    LOST = "lost"
    DUTY = "duty"
    LIMITS = "limits"
    SCHEDULES = "schedules"
    LEASE = "lease"
    CHAINS = "chains"
    EVENTS = "events"
    TEST = "test"
    MISSED = ""


_TOPICS = {topic.value: topic for topic in Topic}
# LOST is in neither: with an id it is about one job, without one about all.
_WITHOUT_SUBJECT = frozenset({Topic.DUE, Topic.DUTY, Topic.LIMITS, Topic.SCHEDULES, Topic.CHAINS, Topic.EVENTS, Topic.MISSED})
_WITH_SUBJECT = frozenset({Topic.JOBS, Topic.ENDED, Topic.PROGRESS, Topic.LEASE, Topic.TEST})


class Wakeup(NamedTuple):
    """A hint that something has changed. It may be lost or repeated: its receiver looks in the tables, and also polls."""

    topic: Topic
    subject: str = ""
    """The name of a queue or a lease, or the id of a job; empty for topics without one."""

    @classmethod
    def new_jobs(cls, queue: str) -> Wakeup:
        """Workers of the queue claim."""
        return _new_jobs(queue)

    @classmethod
    def job_scheduled(cls) -> Self:
        """The stager reads when the next job is due."""
        return cls(Topic.DUE)

    @classmethod
    def job_ended(cls, job_id: UUID | str) -> Self:
        """Clients that wait for the job read its outcome."""
        return cls(Topic.ENDED, str(job_id))

    @classmethod
    def progress_changed(cls, job_id: UUID | str) -> Self:
        """Clients that follow the job read its progress."""
        return cls(Topic.PROGRESS, str(job_id))

    @classmethod
    def job_lost(cls, job_id: UUID | str) -> Self:
        """The worker that runs the job checks whether it still holds it."""
        return cls(Topic.LOST, str(job_id))

    @classmethod
    def any_job_lost(cls) -> Self:
        """Every worker checks whether it still holds the jobs that it runs."""
        return cls(Topic.LOST)

    @classmethod
    def jobs_lost(cls, job_ids: Sequence[UUID | str], *, at_most: int = MOST_NAMED) -> list[Self]:
        """One for each of these jobs, or one for all if there are more than `at_most`."""
        return [cls.job_lost(job_id) for job_id in job_ids] if len(job_ids) <= at_most else [cls.any_job_lost()]

    @classmethod
    def duty_free(cls) -> Self:
        """A duty was released: candidates need not wait until its lease expires."""
        return cls(Topic.DUTY)

    @classmethod
    def limits_changed(cls) -> Self:
        """Workers read the limits again."""
        return cls(Topic.LIMITS)

    @classmethod
    def schedule_changed(cls) -> Self:
        """A schedule was created or changed: the leader computes its next time."""
        return cls(Topic.SCHEDULES)

    @classmethod
    def lease_released(cls, name: str) -> Self:
        """Processes that wait for this lease of a user try to acquire it."""
        return cls(Topic.LEASE, name)

    @classmethod
    def chain_ended(cls) -> Self:
        """A chain has ended that jobs wait for, or a job that waits for chains was enqueued: the resolver looks at them."""
        return cls(Topic.CHAINS)

    @classmethod
    def event_sent(cls) -> Self:
        """An event was sent to workflows, or a workflow waits for one: the resolver brings them together."""
        return cls(Topic.EVENTS)

    @classmethod
    def listener_test(cls, listener: UUID) -> Self:
        """A listener sends it to itself, to find out whether LISTEN delivers. Others ignore it."""
        return cls(Topic.TEST, str(listener))

    @classmethod
    def missed(cls) -> Self:
        """Notifications may have been missed: everything that waits for one looks now."""
        return cls(Topic.MISSED)

    def payload(self) -> str:
        """The text of its NOTIFY."""
        return f"{self.topic.value} {self.subject}" if self.subject else self.topic.value

    @classmethod
    def parse(cls, payload: str) -> Self | None:
        """None for text that is not known: another version, or a person with psql, may send anything."""
        word, _, subject = payload.partition(" ")
        topic = _TOPICS.get(word)
        if topic is None or topic in (_WITHOUT_SUBJECT if subject else _WITH_SUBJECT):
            return None
        return cls(topic, subject)


@lru_cache(maxsize=256)
def _new_jobs(queue: str) -> Wakeup:
    # Cached because enqueues collect the wake-ups of many calls in sets, where the same object is compared fastest.
    return Wakeup(Topic.JOBS, queue)
