"""The timeline of a job: every event whose time is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from tenure.client.report.life import Attempt, Incident, Moment
from tenure.client.report.words import gist, inline, label, plain, span, worker_of
from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.model.system_data import SystemData

_ENDED = {
    "timed_out": "timed out",
    "requeued": "was requeued",
    "crashed": "crashed with its worker",
    "lease_lost": "lost its lease",
    "canceled": "was canceled",
    "dead_letter": "failed for the last time",
}
# A cancellation and the end of the run are written with two readings of the clock, but are one event.
_AT_ONCE = timedelta(seconds=1)


def moments(job: JobStatus, attempts: Sequence[Attempt], incidents: Sequence[Incident]) -> list[Moment]:
    """In order of time; events at the same time are in order of cause and effect."""
    found = [_enqueued(job), *_blocked(job), *_due(job, attempts)]
    for number, attempt in enumerate(attempts):
        after = attempts[number + 1] if number + 1 < len(attempts) else None
        found += _of_attempt(attempt)
        found += _dead_lettered(job, attempt, after, incidents)
    found += [_of_incident(incident) for incident in incidents if not _is_the_end(job, incident)]
    found += _finished(job, attempts, incidents)
    if job.next_id is not None and job.finished_at is not None:
        found.append(
            Moment(at=job.finished_at, what="continued", text=f"continued by job {job.next_id}, the next link of its chain")
        )
    return sorted(found, key=lambda moment: moment.at)


def _enqueued(job: JobStatus) -> Moment:
    by = f" by {inline(job.enqueued_by, 100)}" if job.enqueued_by else ""
    parent = f" on behalf of job {job.parent_id}" if job.parent_id else ""
    return Moment(at=job.enqueued_at, what="enqueued", text=f"enqueued{by}{parent}")


def _blocked(job: JobStatus) -> Iterator[Moment]:
    if count := SystemData.of(job.system).blockers:
        yield Moment(at=job.enqueued_at, what="blocked", text=f"blocked until {count} chains have ended")


def _due(job: JobStatus, attempts: Sequence[Attempt]) -> Iterator[Moment]:
    is_shown = any(attempt.next_at is not None for attempt in attempts)  # the end of the previous attempt shows it
    if job.run_at is not None and (job.state in (State.RETRY, State.SCHEDULED) or not is_shown):
        yield Moment(at=job.run_at, what="due", text="due again" if job.state is State.RETRY else "scheduled for this time")


def _of_attempt(attempt: Attempt) -> Iterator[Moment]:
    if attempt.started_at is not None:
        where = f" on {worker}" if (worker := worker_of(attempt)) else ""
        waited = f", waited {span(attempt.waited)}" if attempt.waited is not None else ""
        yield Moment(at=attempt.started_at, what="started", text=f"{label(attempt)} started{where}{waited}")
    if attempt.ended_at is not None:
        yield Moment(at=attempt.ended_at, what=attempt.outcome, text=_ending(attempt))


def _ending(attempt: Attempt) -> str:
    words = f"{label(attempt)} {_ENDED.get(attempt.outcome, plain(attempt.outcome))}"
    if attempt.by:
        words += f" by {inline(attempt.by, 100)}"
    if attempt.ran is not None:
        words += f" after {span(attempt.ran)}"
    if attempt.error:
        words += f": {gist(attempt.error)}"
    if attempt.next_at is not None and attempt.ended_at is not None:
        words += f"; due again in {span(max(attempt.next_at - attempt.ended_at, timedelta()))}"
    return words


def _dead_lettered(job: JobStatus, attempt: Attempt, after: Attempt | None, incidents: Sequence[Incident]) -> Iterator[Moment]:
    """There is no incident for it: a job was dead-lettered if it still is, or if it was replayed."""
    if attempt.ended_at is None or attempt.next_at is not None or attempt.outcome in ("completed", "canceled"):
        return
    until = after.started_at if after else None
    replayed = any(
        i.what == "replayed" and i.at >= attempt.ended_at and (after is None or (until is not None and i.at <= until))
        for i in incidents
    )
    if replayed or (after is None and job.state is State.DEAD_LETTER):
        yield Moment(at=attempt.ended_at, what="dead_letter", text="dead-lettered")


def _of_incident(incident: Incident) -> Moment:
    by = f" by {inline(incident.by, 100)}" if incident.by else ""
    reason = f": {gist(incident.reason)}" if incident.reason else ""
    return Moment(at=incident.at, what=incident.what, text=f"{plain(incident.what)}{by}{reason}")


def _is_the_end(job: JobStatus, incident: Incident) -> bool:
    return (
        incident.what == "canceled"
        and job.state is State.CANCELED
        and job.finished_at is not None
        and abs(incident.at - job.finished_at) < _AT_ONCE
    )


def _finished(job: JobStatus, attempts: Sequence[Attempt], incidents: Sequence[Incident]) -> Iterator[Moment]:
    """Unless an attempt shows it: then the job ended with that attempt."""
    if job.finished_at is None or any(a.fence == job.fence and a.outcome == job.state for a in attempts):
        return
    cause = next((incident for incident in reversed(incidents) if _is_the_end(job, incident)), None)
    if cause is None:
        cause = Incident(
            at=job.finished_at, what=job.state.value, by=None, reason=job.error if job.state is State.FAILED else None
        )
    moment = _of_incident(cause)
    yield Moment(at=job.finished_at, what=job.state.value, text=moment.text)
