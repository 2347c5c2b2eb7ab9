"""Why a job does not run, for users who see only some of the jobs: without what it says about others' jobs and the workers."""

from __future__ import annotations

from tenure.client.facts import Reason
from tenure.client.status import JobStatus
from tenure.web.security.principal import Principal

_TEXTS = {
    "blocked": "it waits for other chains",
    "blocker_failed": "a chain that it waits for is a dead letter",
    "held_by_unknown": "it is marked as running by an unknown worker: a live worker requeues it within seconds",
    "no_worker": "no worker can run it now: ask the operators to start one",
    "no_worker_for_queue": "no worker serves its queue: ask the operators to start one",
    "no_worker_for_kind": "no worker of its queue knows its kind: ask the operators to start one that does",
    "no_worker_for_capability": "no worker of its queue and kind has its capability: ask the operators to start one",
    "draining": "all workers that could run it are draining: ask the operators to resume them, or to start others",
    "limit_full": "a limit that applies to it is full: it starts when another job of that limit has ended",
    "rate": "the rate of a limit that applies to it is used up: it starts when that allows it",
    "busy": "all slots of the workers that could run it are in use",
    "ready": "nothing blocks it: a worker is ready to run it",
}
"""By the code of the reason. All others are about the job itself and its queue."""


def visible_text(reason: Reason, job: JobStatus, principal: Principal) -> str:
    if not principal.limited:
        return reason.text
    if reason.code == "running":
        since = "" if job.started_at is None else f" since {job.started_at.isoformat(sep=' ', timespec='seconds')}"
        return f"it has been running{since}, attempt {job.attempt} of {job.max_attempts}"
    if reason.code == "ahead" and principal.kinds is not None:
        return "other jobs of its queue are ahead of it, with higher priority or earlier"
    return _TEXTS.get(reason.code, reason.text)
