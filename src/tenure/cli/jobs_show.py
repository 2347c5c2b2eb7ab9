"""`tenure jobs list`, `show` and `report`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Unpack

import click

from tenure.cli import output, paging
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.filters import filters
from tenure.cli.output import Column
from tenure.client.filters import FilterWords
from tenure.client.report.words import gist, plain, value
from tenure.client.status import JobStatus, Progress
from tenure.model.priorities import priority_name
from tenure.model.states import HELD, State

LIST = (
    Column("ID"),
    Column("STATE"),
    Column("KIND", flexible=True),
    Column("QUEUE", flexible=True, optional=True),
    Column("PRIORITY", right=True, optional=True),
    Column("ATTEMPT", right=True, optional=True),
    Column("WHEN", right=True),
)


@click.command("list")
@with_context
@filters()
@paging.limit_option
@paging.after_option
async def list_(context: CommandContext, limit: int, after: str | None, **given: Unpack[FilterWords]) -> None:
    """List the newest jobs that match, live and finished."""

    async def read(size: int, position: str | None) -> tuple[list[JobStatus], str | None]:
        page = await context.client.list(limit=size, after=position, **given)
        return page.jobs, page.next

    jobs, next_ = await paging.gather(read, limit, after)
    if context.as_json:
        output.print_json({"jobs": [job.to_json() for job in jobs], "next": next_})
        return
    if jobs:
        output.show_table(LIST, [_row(job) for job in jobs])
    paging.note_more(jobs, next_, "no matching jobs" if any(word is not None for word in given.values()) else "no jobs")


def _row(job: JobStatus) -> tuple[object, ...]:
    attempt = f"{job.attempt}/{job.max_attempts}"
    return job.id, job.state.value, job.kind, job.queue, job.priority, attempt, output.ago(_since(job))


def _since(job: JobStatus) -> datetime:
    """Since when it has been in its state, or when it is due."""
    if job.state in (State.SCHEDULED, State.RETRY) and job.run_at is not None:
        return job.run_at
    if job.state in HELD and job.started_at is not None:
        return job.started_at
    return job.finished_at or job.enqueued_at


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
async def show(context: CommandContext, job_id: str) -> None:
    """Show the current state of a job. `tenure jobs report` shows its complete history."""
    job = await context.find(job_id)
    progress = await context.handle(job).progress()
    if context.as_json:
        output.print_json({**job.to_json(), "progress": progress})
    else:
        output.show_pairs([*_facts(job, progress)])


def _facts(job: JobStatus, progress: Progress | None) -> Iterator[tuple[str, object]]:
    yield "id", job.id
    yield "kind", job.kind
    yield "state", job.state.value
    yield "queue", job.queue
    yield "priority", priority_name(job.priority)
    yield "capability", job.capability
    yield "limit group", job.limit_group
    yield "attempt", f"{job.attempt} of {job.max_attempts}" + (f", {job.crashes} crashes" if job.crashes else "")
    if progress is not None:
        yield "progress", f"{progress.percent:g} %  {progress.message or ''}".rstrip() + f"  ({output.ago(progress.updated_at)})"
    yield "enqueued", output.moment(job.enqueued_at)
    yield "by", job.enqueued_by
    yield "due", output.moment(job.run_at) if job.started_at is None else None
    yield "expires", output.moment(job.expires_at)
    yield "started", output.moment(job.started_at)
    yield "finished", output.moment(job.finished_at)
    yield "worker", job.worker_id
    yield "timeout", None if job.timeout is None else f"{job.timeout:g} s"
    yield "key", job.key
    yield "parent", job.parent_id
    yield "chain", job.chain_id if job.chain_id != job.id or job.next_id else None
    yield "next link", job.next_id
    yield "auth", None if job.auth is None else value(job.auth)
    yield "meta", None if job.meta is None else value(job.meta)
    yield "system", None if job.system is None else value(job.system)
    yield "input", value(job.input)
    yield "output", None if job.output is None else value(job.output)
    yield "error", gist(job.error) if job.error else None


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--html", metavar="FILE", help="Write a self-contained page to FILE; `-` prints it.")
@click.option("--full", is_flag=True, help="Abbreviate nothing.")
async def report(context: CommandContext, job_id: str, html: str | None, full: bool) -> None:
    """Show a job's complete history: attempts, errors, log and children."""
    report = await context.handle(await context.find(job_id)).report()
    if html is not None and html != "-":
        _write(Path(html), report.to_html())
    if context.as_json:
        output.print_json(report.to_json())
    elif html == "-":
        click.echo(report.to_html(), nl=False)
    elif html is None:
        click.echo(report.to_text(full=full), nl=False)
    else:
        output.note(f"wrote the report of {plain(report.job.kind)} {report.job.id} to {html}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from None
