"""The fields of a job's row, for every format of the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.client.report.words import clock, span, value
from tenure.model.states import State
from tenure.model.system_data import SystemData

if TYPE_CHECKING:
    from tenure.client.report.life import Report


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """By name. Unset fields are left out, and so is `auth`, because reports are shared."""
    job, totals = report.job, report.totals
    yield "queue", f"{job.queue}, priority {job.priority}" + (f", needs {job.capability}" if job.capability else "")
    yield "attempts", f"{job.attempt} of {job.max_attempts}" + (f", crashes {job.crashes}" if job.crashes else "")
    yield "time", f"waited {span(totals.waited)}, ran {span(totals.ran)}, lived {span(totals.lived)}"
    yield "enqueued", clock(job.enqueued_at)
    if job.finished_at is not None:
        yield "finished", clock(job.finished_at)
    if job.expires_at is not None:
        yield "expires", clock(job.expires_at)
    if job.timeout is not None:
        yield "timeout", f"{job.timeout:g} s"
    if job.key is not None:
        yield "key", job.key
    if job.parent_id is not None:
        yield "parent", str(job.parent_id)
    system = SystemData.of(job.system)
    if planned := system.planned:
        yield "schedule", f"{planned.schedule}, for {clock(planned.at)}" + (", late" if planned.late else "")
    if retried := system.retry_of:
        yield "retry of", retried
    if system.headers:
        yield "headers", value(dict(system.headers))
    if job.meta is not None:
        yield "meta", value(job.meta)


def payloads(report: Report) -> Iterator[tuple[str, str]]:
    """The input and the output."""
    yield "input", value(report.job.input)
    if report.job.output is not None:
        yield "output", value(report.job.output)


def lost_error(report: Report) -> str | None:
    """The error of the row, if no stored attempt has it."""
    error, shown = report.job.error, {attempt.error for attempt in report.attempts}
    return None if error in shown or report.job.state is State.COMPLETED else error
