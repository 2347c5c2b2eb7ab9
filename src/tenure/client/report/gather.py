"""Reads everything that is stored about a job."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.client.report.derive import ReportFacts, derive
from tenure.client.report.life import Report, ReportedChild, ReportedLogLine
from tenure.client.report.steps import with_steps
from tenure.client.status import JobStatus, Progress
from tenure.model.states import State
from tenure.store import reports
from tenure.store.job_records import ChildRecord, LogLineRecord, ProgressRecord
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
    return with_steps(derive(_facts(rows[0])), rows[0].steps) if rows else None


def _facts(row: ReportRow) -> ReportFacts:
    return ReportFacts(
        at=row.at,
        job=JobStatus.from_row(row.job),
        worker=row.worker,
        noted=row.incidents,
        progress=None if row.progress is None else _progress(row.progress),
        log=[_line(record) for record in row.log],
        children=[_child(record) for record in row.children[:MAX_CHILDREN]],
        more_children=len(row.children) > MAX_CHILDREN,
    )


def _child(record: ChildRecord) -> ReportedChild:
    return ReportedChild(id=record.id, kind=record.kind, state=State(record.state), queue=record.queue)


def _progress(record: ProgressRecord) -> Progress | None:
    percent = float(record.percent)
    return Progress(percent, record.message, record.updated_at) if math.isfinite(percent) else None


def _line(record: LogLineRecord) -> ReportedLogLine:
    """Lines are written by processes that may have crashed in between: shows what is there."""
    given = record.line if isinstance(record.line, dict) else {"message": record.line}
    extra = given.get("fields")
    return ReportedLogLine(
        at=_line_time(given.get("at")) or record.kept_at,
        level=str(given.get("level") or "info"),
        message=_text(given.get("message")),
        fields=extra if isinstance(extra, dict) else {},
        fence=record.fence,
    )


def _text(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _line_time(text: Any) -> datetime | None:
    """A time by the worker's clock; without an offset it cannot be used."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
