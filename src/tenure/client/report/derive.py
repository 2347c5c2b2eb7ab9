"""From stored rows to the history of a job. Pure: reads no clock; the time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from tenure.client.report.life import Attempt, Incident, Report, ReportedChild, ReportedLogLine, ReportTotals
from tenure.client.report.moments import moments
from tenure.client.status import JobStatus, Progress
from tenure.model.states import HELD, State
from tenure.store.job_records import IncidentRecord

# These happen to a job that is not running, even if their row names a run.
_BY_HAND = frozenset({"retried", "replayed"})
_NOT_WAITING = HELD | {State.DEAD_LETTER, State.COMPLETED, State.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Everything that is stored about a job, as of `at`."""

    at: datetime
    job: JobStatus
    worker: str | None
    noted: list[IncidentRecord]
    """In order of time."""
    progress: Progress | None
    log: list[ReportedLogLine]
    children: list[ReportedChild]
    more_children: bool


def derive(facts: ReportFacts) -> Report:
    runs, rest = _sort_out(facts.noted)
    incidents = [Incident(at=noted.at, what=noted.what, by=noted.by, reason=noted.error) for noted in rest]
    attempts = [_of_noted(fence, noted) for fence, noted in runs.items()]
    attempts += _of_row(facts, attempts, incidents)
    attempts = _with_waits(facts.job, sorted(attempts, key=lambda attempt: attempt.fence), incidents)
    return Report(
        at=facts.at,
        job=facts.job,
        attempts=attempts,
        untold=max(facts.job.fence - len(attempts), 0),
        incidents=incidents,
        events=moments(facts.job, attempts, incidents),
        progress=facts.progress,
        log=facts.log,
        children=facts.children,
        more_children=facts.more_children,
        totals=_totals(facts, attempts, incidents),
    )


def _sort_out(given: Iterable[IncidentRecord]) -> tuple[dict[int, IncidentRecord], list[IncidentRecord]]:
    """The incidents that ended a run, by its fence; and all others."""
    runs: dict[int, IncidentRecord] = {}
    rest: list[IncidentRecord] = []
    for noted in given:
        if noted.fence and noted.fence not in runs and _ended_a_run(noted):
            runs[noted.fence] = noted
        else:
            rest.append(noted)
    return runs, rest


def _ended_a_run(noted: IncidentRecord) -> bool:
    # A waiting job can be canceled too: only a worker's id shows that it was running.
    return noted.worker_id is not None if noted.what == "canceled" else noted.what not in _BY_HAND


def _of_noted(fence: int, noted: IncidentRecord) -> Attempt:
    return Attempt(
        number=noted.attempt,
        fence=fence,
        worker_id=noted.worker_id,
        worker=noted.worker,
        waited=None,
        started_at=noted.started_at,
        ended_at=noted.at,
        ran=_span(noted.started_at, noted.at),
        outcome=noted.what,
        error=noted.error,
        next_at=noted.next_at,
        by=noted.by,
    )


def _of_row(facts: ReportFacts, known: Sequence[Attempt], incidents: Iterable[Incident]) -> Iterable[Attempt]:
    """The latest run, if no incident ended it: it still runs, or ended as planned, or its incident is no longer stored."""
    job = facts.job
    if not job.fence or any(attempt.fence == job.fence for attempt in known):
        return
    known_run = job.state in HELD or (job.state.finished and job.worker_id is not None)
    outcome = "running" if job.state in HELD else job.state.value if known_run else "unknown"
    yield Attempt(
        number=job.attempt if known_run else None,
        fence=job.fence,
        worker_id=job.worker_id,
        worker=facts.worker,
        waited=None,
        started_at=job.started_at,
        ended_at=job.finished_at if known_run else None,
        ran=_span(job.started_at, job.finished_at or facts.at) if known_run else None,
        outcome=outcome,
        error=_own_error(job, known) if outcome in ("failed", "canceled") else None,
        next_at=None,
        by=_canceled_by(incidents) if outcome == "canceled" else None,
    )


def _own_error(job: JobStatus, known: Iterable[Attempt]) -> str | None:
    """The row keeps the error of an earlier attempt until there is a newer one."""
    return None if job.error in {attempt.error for attempt in known} else job.error


def _canceled_by(incidents: Iterable[Incident]) -> str | None:
    return next((incident.by for incident in reversed(list(incidents)) if incident.what == "canceled"), None)


def _with_waits(job: JobStatus, attempts: Sequence[Attempt], incidents: Sequence[Incident]) -> list[Attempt]:
    before = [None, *attempts]
    return [
        replace(attempt, waited=_span(_ready_at(job, earlier, attempt, incidents), attempt.started_at))
        for earlier, attempt in pairwise(before)
        if attempt is not None
    ]


def _ready_at(job: JobStatus, earlier: Attempt | None, attempt: Attempt, incidents: Sequence[Incident]) -> datetime | None:
    until = attempt.started_at
    known = earlier if earlier is not None and earlier.fence == attempt.fence - 1 else None
    if until is None or (known is None and attempt.fence > 1):
        return _pushed_at(incidents, (earlier.ended_at or earlier.started_at) if earlier else job.enqueued_at, until)
    return _ready_after(job, known, incidents, until)


def _ready_after(job: JobStatus, earlier: Attempt | None, incidents: Sequence[Incident], until: datetime) -> datetime | None:
    """When the job became ready after `earlier` (None: for the first time), if that was before `until`."""
    if earlier is None:
        # Once it has run, the row's time may be that of the next attempt.
        planned = job.run_at if job.run_at and (job.run_at <= until or not job.fence) else job.enqueued_at
        return _pushed_at(incidents, job.enqueued_at, until) or planned
    # A run that is due at once may be recorded shortly after the time it was due.
    known = [at for at in (earlier.next_at, earlier.ended_at) if at is not None]
    return _pushed_at(incidents, earlier.ended_at or earlier.started_at, until) or max(known, default=None)


def _pushed_at(incidents: Iterable[Incident], since: datetime | None, until: datetime | None) -> datetime | None:
    """When a retry or replay last made it ready in between."""
    pushes = [i.at for i in incidents if i.what in _BY_HAND and (not since or i.at >= since) and (not until or i.at <= until)]
    return max(pushes, default=None)


def _totals(facts: ReportFacts, attempts: Sequence[Attempt], incidents: Sequence[Incident]) -> ReportTotals:
    waits = [attempt.waited for attempt in attempts if attempt.waited] + [_still_waiting(facts, attempts, incidents)]
    end = facts.job.finished_at or facts.at
    return ReportTotals(
        waited=sum(waits, timedelta()),
        ran=sum((attempt.ran for attempt in attempts if attempt.ran), timedelta()),
        lived=_span(facts.job.enqueued_at, end) or timedelta(),
    )


def _still_waiting(facts: ReportFacts, attempts: Sequence[Attempt], incidents: Sequence[Incident]) -> timedelta:
    """The time since it was last ready: until now, or until it was canceled without having run again."""
    job, last = facts.job, attempts[-1] if attempts else None
    if job.state in _NOT_WAITING or (last and last.ended_at is None) or (last and last.outcome == "canceled"):
        return timedelta()
    until = job.finished_at or facts.at
    return _span(_ready_after(job, last, incidents, until), until) or timedelta()


def _span(start: datetime | None, end: datetime | None) -> timedelta | None:
    """Never negative: two statements may read the clock in the other order."""
    return None if start is None or end is None else max(end - start, timedelta())
