"""Lives of jobs, put together by hand: seconds count from the enqueue."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tenure.client.report.derive import ReportFacts, derive
from tenure.client.report.life import Report, ReportedLogLine
from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.store.job_records import IncidentRecord

START = datetime(2026, 7, 27, 10, 0, tzinfo=UTC)
JOB = UUID(int=1)
WORKER = UUID("aaaaaaaa-0000-4000-8000-000000000000")

TRACEBACK = """Traceback (most recent call last):
  File "/app/worker.py", line 10, in run
    outcome = handler(*args)
  File "/app/jobs.py", line 3, in send
    inner(message)
  File "/app/mail.py", line 7, in inner
    raise ValueError("no such address")
ValueError: no such address
"""


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def status(state: str = "pending", **given: Any) -> JobStatus:
    plain = JobStatus(
        id=JOB,
        kind="send_email",
        queue="mail",
        state=State(state),
        priority=50,
        capability=None,
        attempt=given.get("fence", 0),
        max_attempts=3,
        crashes=0,
        fence=0,
        worker_id=None,
        enqueued_at=START,
        run_at=None,
        started_at=None,
        finished_at=None,
        error=None,
        input={"to": "ada"},
        output=None,
        timeout=None,
        key=None,
        parent_id=None,
        enqueued_by="shop",
        auth={"user": "secret-user"},
        meta=None,
    )
    return replace(plain, **given)


def ended(
    fence: int, began: float, end: float, what: str = "failed", *, due: float | None = None, error: str | None = None, **more: Any
) -> IncidentRecord:
    """The incident that ended a run."""
    noted = IncidentRecord(
        at=at(end),
        what=what,
        attempt=fence,
        fence=fence,
        worker_id=WORKER,
        worker="here:1",
        started_at=at(began),
        next_at=None if due is None else at(due),
        error=error,
    )
    return replace(noted, **more)


def facts(job: JobStatus, *noted: IncidentRecord, now: float = 100, **more: Any) -> ReportFacts:
    plain = ReportFacts(
        at=at(now),
        job=job,
        worker="here:1",
        noted=list(noted),
        progress=None,
        log=[],
        children=[],
        more_children=False,
    )
    return replace(plain, **more)


def report(job: JobStatus, *noted: IncidentRecord, now: float = 100, **more: Any) -> Report:
    return derive(facts(job, *noted, now=now, **more))


def twice_failed() -> Report:
    """Failed at 1 s and 5 s, completed at 12 s."""
    job = status(
        "completed", fence=3, worker_id=WORKER, started_at=at(10), finished_at=at(12), error=TRACEBACK, output={"ok": True}
    )
    return report(
        job,
        ended(1, 0.15, 1, due=3, error=TRACEBACK),
        ended(2, 4, 5, "timed_out", due=9, error="TimeoutError: timed out"),
    )


def line(message: str, *, second: float = 1, level: str = "info", fence: int = 1, **fields: Any) -> ReportedLogLine:
    return ReportedLogLine(at=at(second), level=level, message=message, fields=fields, fence=fence)


def timeline(told: Report) -> list[tuple[float, str]]:
    return [((moment.at - START).total_seconds(), moment.what) for moment in told.events]
