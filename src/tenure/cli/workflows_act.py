"""`tenure workflows signal`, `cancel`, `resume` and `fork`."""

from __future__ import annotations

import json

import click

from tenure.cli import options, output
from tenure.cli.command_context import CommandContext, with_context


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.argument("name")
@click.argument("payload", required=False, metavar="[JSON]")
@options.by
async def signal(context: CommandContext, *, job_id: str, name: str, payload: str | None, by: str) -> None:
    """Send a signal to a workflow, which receives it by ctx.wait_for_signal(NAME)."""
    job = await context.find(job_id)
    await context.app.workflows.signal(job.id, name, _json(payload), by=by)
    if context.as_json:
        output.print_json({"id": job.id, "signal": name})
    else:
        click.echo(f"{job.id} will receive signal {name!r}")


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--reason", help="The reason, which is recorded.")
@options.by
async def cancel(context: CommandContext, job_id: str, reason: str | None, by: str) -> None:
    """Cancel a workflow. If it has something to undo, it runs once more for that; a second cancellation ends it at once."""
    job = await context.find(job_id)
    done = await context.app.workflows.cancel(job.id, reason, by=by)
    if context.as_json:
        output.print_json({"id": job.id, "canceled": done})
    else:
        click.echo(f"{job.id} is canceled" if done else f"{job.id} was over already")


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--version", help="From now on, only workers with this version of its code run it.")
@options.by
async def resume(context: CommandContext, job_id: str, version: str | None, by: str) -> None:
    """Let a held workflow continue, once its code fits again."""
    job = await context.find(job_id)
    await context.app.workflows.resume(job.id, version=version, by=by)
    if context.as_json:
        output.print_json({"id": job.id, "resumed": True, "version": version})
    else:
        click.echo(f"{job.id} continues")


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--from-step", help="The first step that is run again. Default: keep all that is recorded.")
@options.by
async def fork(context: CommandContext, job_id: str, from_step: str | None, by: str) -> None:
    """Run a workflow again as a new job that keeps what was recorded before a step. The old one stays as it is."""
    job = await context.find(job_id)
    handle = await context.app.workflows.fork(job.id, from_step=from_step, by=by)
    if context.as_json:
        output.print_json({"id": job.id, "runs_as": handle.id})
    else:
        click.echo(f"{job.id} will run again as {handle.id}")


def _json(text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"the payload is not valid JSON ({error}): quote texts, '\"yes\"'") from None
