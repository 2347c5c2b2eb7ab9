"""Requeues the jobs of condemned workers: the reaper those of all workers, a supervisor those of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tenure.leader.reporting import Reporting
from tenure.logs import SPELLED_OUT
from tenure.model.events import JobReaped
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, workers
from tenure.store.isolation import RefusedRows
from tenure.store.link import Link
from tenure.store.moved_jobs import ReapedJob, ReturnedRow
from tenure.store.query import Pick

log = logging.getLogger("tenure")

MOST_WORKERS = 500
"""Condemned workers that are handled one by one, if one of them is rejected."""

_LEVELS = {"stopped": logging.INFO}
_MESSAGES = {
    "stopped": "jobs of a stopped worker were requeued",
    "crashed": "jobs of a worker that died were requeued",
    "lease_lost": "jobs of a worker whose lease expired were requeued",
    "expired": "jobs whose own lease expired were requeued",
}
_MOST_NAMED = 20


class _Requeued(NamedTuple):
    """The jobs of several workers."""

    jobs: int
    peeked: list[str]
    """The ids of the workers, if `pick.peek`."""


class Requeuer:
    """Remembers between calls which rows PostgreSQL rejects, so that they do not block the others."""

    def __init__(self, reporting: Reporting | None = None) -> None:
        self._reporting = reporting or Reporting()
        self._jobs = RefusedRows("to requeue a job")
        self._workers = RefusedRows("to remove a worker", "worker_id")

    async def requeue(self, link: Link, worker_id: str | None = None) -> int:
        """Requeues the jobs of one condemned worker, or of all. Returns how many jobs were moved."""
        if worker_id is not None:
            return await self._requeue(link, worker_id)

        async def send(pick: Pick) -> _Requeued:
            if pick.peek:
                return _Requeued(0, await link.fetch(workers.find_condemned(limit=MOST_WORKERS + pick.more)))
            if pick.only is None:
                return _Requeued(await self._requeue(link, None), [])
            return _Requeued(sum([await self._requeue(link, one) for one in pick.only]), [])

        return sum(answer.jobs for answer in await self._workers.run(send))

    async def _requeue(self, link: Link, worker_id: str | None) -> int:
        async def send(pick: Pick) -> ReturnedRow:
            [answer] = await link.fetch(jobs.return_jobs(worker_id, pick=pick))
            if not pick.peek:
                announce(self._reporting, answer.queues, answer.jobs)
            return answer

        total, more = 0, True
        while more:
            answers = await self._jobs.run(send)
            moved = sum(answer.requeued + answer.quarantined for answer in answers)
            total += moved
            # A trigger may suppress every change without an error: then the next round tries again.
            more = len(answers) == 1 and moved > 0 and answers[0].more
        return total


async def requeue_jobs(link: Link, worker_id: str | None, reporting: Reporting | None = None) -> int:
    """For a supervisor or in-process worker that requeues the jobs of a worker that has ended."""
    return await Requeuer(reporting).requeue(link, worker_id)


def announce(reporting: Reporting, queues: Sequence[str], reaped: Sequence[ReapedJob]) -> None:
    """Wakes the workers that can claim these jobs and those that may still run them; logs, counts and emits what was done."""
    _notify(reporting, queues, reaped)
    for job in reaped:
        reporting.count_requeued(job.queue, job.kind, job.why)
    _report_requeued([job for job in reaped if not job.quarantined])
    for job in reaped:
        if job.quarantined:
            _report_quarantined(job, reporting.dead_letter_level)
    if reporting.events.wants(JobReaped):
        for job in reaped:
            reporting.events.emit(_reaped_event(job))


def _notify(reporting: Reporting, queues: Sequence[str], reaped: Sequence[ReapedJob]) -> None:
    for queue in queues:
        reporting.notify(Wakeup.new_jobs(queue))
    # Runs of a process that has ended need no notification.
    for wakeup in Wakeup.jobs_lost([str(job.job_id) for job in reaped if job.why in ("expired", "lease_lost")]):
        reporting.notify(wakeup)
    for job in reaped:
        if job.quarantined and job.watched:
            reporting.notify(Wakeup.job_ended(str(job.job_id)))
    if any(job.dependants for job in reaped):
        reporting.notify(Wakeup.chain_ended())


def _reaped_event(job: ReapedJob) -> JobReaped:
    return JobReaped(
        job_id=job.job_id,
        kind=job.kind,
        queue=job.queue,
        worker_id=job.worker_id,
        why=job.why,
        quarantined=job.quarantined,
        worker=job.worker or "",
        host=job.host or "",
    )


def _holder_of(job: ReapedJob) -> dict[str, str | None]:
    return {"worker_id": str(job.worker_id), "worker": job.worker, "host": job.host}


def _report_quarantined(job: ReapedJob, level: int) -> None:
    fields = {
        "job_id": str(job.job_id),
        "kind": job.kind,
        "queue": job.queue,
        **_holder_of(job),
        "why": job.why,
        "crashes": job.crashes,
        "error": job.error,
    }
    text = "job %s (%s) was %s; to run it again: tenure jobs replay %s"
    log.log(level, text, job.job_id, job.kind, job.error, job.job_id, extra={**fields, SPELLED_OUT: True})


def _report_requeued(reaped: Sequence[ReapedJob]) -> None:
    """One record for each worker and reason."""
    groups: dict[tuple[UUID, str], list[ReapedJob]] = {}
    for job in reaped:
        groups.setdefault((job.worker_id, job.why), []).append(job)
    for (_, why), group in groups.items():
        fields = {
            **{name: value for name, value in _holder_of(group[0]).items() if value},
            "jobs": len(group),
            "kinds": ", ".join(sorted({job.kind for job in group})),
            "job_ids": ", ".join(str(job.job_id) for job in group[:_MOST_NAMED]),
        }
        log.log(_LEVELS.get(why, logging.WARNING), _MESSAGES[why], extra=fields)
