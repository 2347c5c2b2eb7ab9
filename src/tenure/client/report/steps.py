"""The steps of a workflow as points of the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tenure.client.report.life import Moment, Report
from tenure.client.report.words import clock, gist, inline, span
from tenure.store.job_records import StepRecord

_HIDDEN = frozenset({"status", "value", "patch"})
"""What shows nothing of the course of the workflow."""


def with_steps(report: Report, rows: Iterable[StepRecord]) -> Report:
    """The report of a workflow. That of any other job is not changed."""
    found = [moment for row in rows if row.what not in _HIDDEN for moment in _moments(row)]
    if not found:
        return report
    return replace(report, events=sorted([*report.events, *found], key=lambda moment: moment.at))


def _moments(row: StepRecord) -> Iterator[Moment]:
    named = f"{row.what} {inline(row.name, 100)!r}"
    if row.state in ("open", "retry") and row.started_at is not None:
        until = f" until {clock(row.due_at, 'seconds')}" if row.due_at is not None else ""
        failed = f" after {row.attempts} failed tries, the last: {gist(row.error)}" if row.error else ""
        yield Moment(at=row.started_at, what="waiting", text=f"{named} waits{until}{failed}")
    elif row.ended_at is not None:
        took = f" after {span(row.ended_at - row.started_at)}" if row.started_at is not None else ""
        tries = f" in {row.attempts} tries" if row.attempts > 1 else ""
        error = f": {gist(row.error)}" if row.error else ""
        yield Moment(at=row.ended_at, what=f"step_{row.state}", text=f"{named} {row.state}{took}{tries}{error}")
