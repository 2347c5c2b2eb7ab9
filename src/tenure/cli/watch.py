"""`tenure watch`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from tenure.cli import exit_codes, output, param_types
from tenure.cli.command_context import CommandContext, with_context
from tenure.client.handle import Handle
from tenure.client.report.words import gist, span
from tenure.client.status import JobStatus, JobUpdate
from tenure.model.errors import ResultTimeout, StoreUnavailable
from tenure.model.states import State

RETRY_AFTER = 1.0  # seconds, when the database is unavailable

Show = Callable[[JobUpdate], None]


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--timeout", type=param_types.DURATION, help="Stop watching after this time: 30s, 5m; exit code 6.")
async def watch(context: CommandContext, job_id: str, timeout: float | None) -> int:
    """Follow a job until it has finished.

    Shows a progress bar on a terminal and a line for each step otherwise; with --json each line is a document. The exit code
    shows the outcome: 0 completed, 5 failed or dead letter, 7 canceled.
    """
    job = await context.find(job_id)
    with _json_lines() if context.as_json else _bar() if output.is_terminal() else _lines() as show:
        job = await _follow(context.handle(job), job, show, timeout)
    if not context.as_json:
        click.echo(output.safe(_outcome(job)))
    return exit_codes.of_state(job.state)


async def _follow(handle: Handle[object], job: JobStatus, show: Show, timeout: float | None) -> JobStatus:
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    async for update in handle.watch():
                        job = update.status
                        show(update)
                    return job
                except StoreUnavailable as error:
                    output.note(f"tenure: {error}; retrying")
                    await asyncio.sleep(RETRY_AFTER)
    except TimeoutError:
        raise ResultTimeout(job.id, job.kind, job.state, timeout or 0.0) from None


@contextmanager
def _json_lines() -> Iterator[Show]:
    yield lambda update: output.print_json({"job": update.status.to_json(), "progress": update.progress})


@contextmanager
def _lines() -> Iterator[Show]:
    yield lambda update: click.echo("  ".join(output.safe(word) for word in _words(update)))


def _words(update: JobUpdate) -> Iterator[str]:
    job, progress = update.status, update.progress
    yield job.state.value
    if job.attempt:
        yield f"attempt {job.attempt} of {job.max_attempts}"
    if progress is not None:
        yield f"{progress.percent:g} %"
        if progress.message:
            yield progress.message


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.table import Column  # noqa: PLC0415

    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    with Progress(BarColumn(24), TimeElapsedColumn(), text, transient=True, expand=True) as progress:
        task = progress.add_task("", total=None)

        def show(update: JobUpdate) -> None:
            done = None if update.progress is None else update.progress.percent
            words = "  ".join(output.safe(word) for word in _words(update))
            progress.update(task, description=words, total=None if done is None else 100, completed=done or 0)

        yield show


def _outcome(job: JobStatus) -> str:
    ended = "is a dead letter" if job.state == State.DEAD_LETTER else f"is {job.state.value}"
    text = f"{job.id} ({job.kind}) {ended}"
    if job.attempt:
        text += f" after {output.counted(job.attempt, 'attempt')}"
    if job.finished_at is not None:
        text += f", {span(job.finished_at - job.enqueued_at)} after it was enqueued"
    return f"{text}: {gist(job.error)}" if job.error else text
