"""`tenure jobs list`, `show` and `report`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Unpack

import click

from tenure.cli import output, types
from tenure.cli.asking import Asker, asks
from tenure.cli.filters import filters
from tenure.cli.output import Column
from tenure.client.filters import FilterWords
from tenure.client.pages import LARGEST_PAGE, Page
from tenure.client.report.words import gist, plain, value
from tenure.client.status import JobStatus, Progress
from tenure.model.priorities import priority_name
from tenure.model.states import HELD, State

MOST_LOOKS = 50
"""A look passes over some thousand jobs; after so many, whoever asks may decide to go on."""

LIST = (
    Column("ID"),
    Column("STATE"),
    Column("KIND", flexible=True),
    Column("QUEUE", flexible=True, spare=True),
    Column("PRIORITY", right=True, spare=True),
    Column("ATTEMPT", right=True, spare=True),
    Column("WHEN", right=True),
)


@click.command("list")
@asks
@filters()
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@click.option("--after", type=types.CURSOR, help="Where the page before ended.")
async def list_(ask: Asker, limit: int, after: str | None, **given: Unpack[FilterWords]) -> None:
    """The newest jobs that fit, live and finished."""
    page = await _page(ask, limit, after, given)
    if ask.as_json:
        output.emit({"jobs": [job.to_json() for job in page.jobs], "next": page.next})
        return
    if page.jobs:
        output.show_table(LIST, [_row(job) for job in page.jobs])
    if page.next:
        output.say(f"there is more: --after {page.next}" if page.jobs else f"none so far; go on with --after {page.next}")
    elif not page.jobs:
        output.say("no job fits" if any(word is not None for word in given.values()) else "there are no jobs")


async def _page(ask: Asker, limit: int, after: str | None, given: FilterWords) -> Page:
    """A look may find little and yet have more to look at."""
    found: list[JobStatus] = []
    for _ in range(MOST_LOOKS):
        page = await ask.client.list(limit=min(limit - len(found), LARGEST_PAGE), after=after, **given)
        found += page.jobs
        after = page.next
        if after is None or len(found) >= limit:
            break
    return Page(found, after)


def _row(job: JobStatus) -> tuple[object, ...]:
    attempt = f"{job.attempt}/{job.max_attempts}"
    return job.id, job.state.value, job.kind, job.queue, job.priority, attempt, output.ago(_since(job))


def _since(job: JobStatus) -> datetime:
    """Since when it is in its state, or when it is due."""
    if job.state in (State.SCHEDULED, State.RETRY) and job.run_at is not None:
        return job.run_at
    if job.state in HELD and job.started_at is not None:
        return job.started_at
    return job.finished_at or job.enqueued_at


@click.command()
@asks
@click.argument("job_id", metavar="ID")
async def show(ask: Asker, job_id: str) -> None:
    """A job as it stands. `tenure jobs report` tells its whole life."""
    job = await ask.find(job_id)
    progress = await ask.handle(job).progress()
    if ask.as_json:
        output.emit({**job.to_json(), "progress": progress})
    else:
        output.show_pairs([*_facts(job, progress)])


def _facts(job: JobStatus, progress: Progress | None) -> Iterator[tuple[str, object]]:
    yield "id", job.id
    yield "kind", job.kind
    yield "state", job.state.value
    yield "queue", job.queue
    yield "priority", priority_name(job.priority)
    yield "needs", job.capability
    yield "gate", job.gate
    yield "attempt", f"{job.attempt} of {job.max_attempts}" + (f", {job.crashes} crashes" if job.crashes else "")
    if progress is not None:
        yield "progress", f"{progress.percent:g} %  {progress.message or ''}".rstrip() + f"  ({output.ago(progress.updated_at)})"
    yield "enqueued", output.moment(job.enqueued_at)
    yield "by", job.enqueued_by
    yield "due", output.moment(job.run_at) if job.started_at is None else None
    yield "started", output.moment(job.started_at)
    yield "finished", output.moment(job.finished_at)
    yield "worker", job.worker_id
    yield "timeout", None if job.timeout is None else f"{job.timeout:g} s"
    yield "key", job.key
    yield "parent", job.parent_id
    yield "auth", None if job.auth is None else value(job.auth)
    yield "meta", None if job.meta is None else value(job.meta)
    yield "system", None if job.system is None else value(job.system)
    yield "input", value(job.input)
    yield "output", None if job.output is None else value(job.output)
    yield "error", gist(job.error) if job.error else None


@click.command()
@asks
@click.argument("job_id", metavar="ID")
@click.option("--html", metavar="FILE", help="Write a page of its own; `-` prints it.")
@click.option("--full", is_flag=True, help="Leave nothing out of errors and long lines.")
async def report(ask: Asker, job_id: str, html: str | None, full: bool) -> None:
    """A job's whole life: its attempts, what went wrong, its log and its children."""
    told = await ask.handle(await ask.find(job_id)).report()
    if html is not None and html != "-":
        _write(Path(html), told.to_html())
    if ask.as_json:
        output.emit(told.to_json())
    elif html == "-":
        click.echo(told.to_html(), nl=False)
    elif html is None:
        click.echo(told.to_text(full=full), nl=False)
    else:
        output.say(f"the report of {plain(told.job.kind)} {told.job.id} is in {html}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from None
