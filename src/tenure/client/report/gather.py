"""Reads everything that is stored about a job."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.client.report.derive import Noted, ReportFacts, derive
from tenure.client.report.life import Report, ReportedChild, ReportedLogLine
from tenure.client.report.steps import ReportedStep, with_steps
from tenure.client.status import JobStatus, Progress
from tenure.model.states import State
from tenure.store import reports
from tenure.store.query import Fetch
from tenure.store.reports import ReportRow

MAX_INCIDENTS = 200  # a job that snoozes every second has thousands
MAX_LINES = 200
MAX_CHILDREN = 100
MAX_STEPS = 500


async def gather(fetch: Fetch, job_id: UUID) -> Report | None:
    """The report of a job, or None when there is no such job. One statement: everything is as of the same moment."""
    limits = {"incidents": MAX_INCIDENTS, "lines": MAX_LINES, "children": MAX_CHILDREN, "steps": MAX_STEPS}
    rows = await fetch(reports.find(str(job_id), **limits))
    return with_steps(derive(_facts(rows[0])), [_step(item) for item in _list(rows[0].steps)]) if rows else None


def _facts(row: ReportRow) -> ReportFacts:
    listed = _list(row.children)
    return ReportFacts(
        at=row.at,
        job=JobStatus.from_row(row.job),
        worker=row.worker,
        noted=[_noted(item) for item in _list(row.incidents)],
        progress=_progress(**json.loads(row.progress)) if row.progress is not None else None,
        log=[_line(**item) for item in _list(row.log)],
        children=[_child(item) for item in listed[:MAX_CHILDREN]],
        more_children=len(listed) > MAX_CHILDREN,
    )


def _child(row: dict[str, Any]) -> ReportedChild:
    return ReportedChild(id=UUID(row["id"]), kind=row["kind"], state=State(row["state"]), queue=row["queue"])


def _list(text: str | None) -> list[Any]:
    return [] if text is None else list(json.loads(text))


def _progress(percent: Any, message: str | None, updated_at: str) -> Progress | None:
    known = float(percent)  # PostgreSQL writes NaN as a text
    return Progress(known, message, datetime.fromisoformat(updated_at)) if math.isfinite(known) else None


def _noted(row: dict[str, Any]) -> Noted:
    times = {name: _time(row[name]) for name in ("at", "started_at", "next_at")}
    worker_id = UUID(row["worker_id"]) if row["worker_id"] else None
    return Noted(**{**row, **times, "worker_id": worker_id})


def _step(row: dict[str, Any]) -> ReportedStep:
    times = {name: _time(row[name]) for name in ("started_at", "ended_at", "due_at")}
    return ReportedStep(**{**row, **times})


def _line(fence: int, kept_at: str, line: Any) -> ReportedLogLine:
    """Lines are written by processes that may have crashed in between: shows what is there."""
    given = line if isinstance(line, dict) else {"message": line}
    extra = given.get("fields")
    return ReportedLogLine(
        at=_line_time(given.get("at")) or _time(kept_at),
        level=str(given.get("level") or "info"),
        message=_text(given.get("message")),
        fields=extra if isinstance(extra, dict) else {},
        fence=fence,
    )


def _text(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _line_time(text: Any) -> datetime | None:
    """A time by the worker's clock; without an offset it cannot be used."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
