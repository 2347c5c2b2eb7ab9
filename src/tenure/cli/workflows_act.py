"""`tenure workflows signal`, `emit`, `cancel`, `resume` and `fork`."""

from __future__ import annotations

import json
from uuid import UUID

import click

from tenure.cli import options, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.workflow_words import signal_of, wait_words
from tenure.client.workflow_status import WorkflowStatus
from tenure.model.states import State


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
        await _note_other_waits(context, job.id, name)


@click.command()
@with_context
@click.argument("event")
@click.argument("payload", required=False, metavar="[JSON]")
@click.option("--key", help="Only workflows that wait for this event with this key receive it, such as the id of an order.")
async def emit(context: CommandContext, event: str, payload: str | None, key: str | None) -> None:
    """Send an event to all workflows that wait for it, now or later, by ctx.wait_for(EVENT). The same as app.emit() in code.

    Of several events with the same name and key, the first one is received.
    """
    await context.app.emit(event, _json(payload), key=key)
    if context.as_json:
        output.print_json({"event": event, "key": key})
    else:
        click.echo(f"event {event!r}" + (f" with key {key!r}" if key else "") + " is stored for the workflows that wait for it")


async def _note_other_waits(context: CommandContext, job_id: UUID, name: str) -> None:
    """A signal is kept until it is asked for, so a misspelled one would wait unnoticed."""
    status = await context.app.workflows.get(job_id)
    if status.waits and name not in {signal_of(step, status.job) for step in status.waits}:
        waits = ", ".join(wait_words(step, status.job) for step in status.waits)
        output.note(f"it does not wait for this signal now, but for: {waits}")


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--reason", help="The reason, which is recorded.")
@click.option("--force", is_flag=True, help="Cancel it at once, without undoing what is not undone yet.")
@options.by
async def cancel(context: CommandContext, *, job_id: str, reason: str | None, force: bool, by: str) -> None:
    """Cancel a workflow. If it has something to undo, it runs once more for that, and is canceled then."""
    job = await context.find(job_id)
    before = await context.app.workflows.get(job.id)
    done = await context.app.workflows.cancel(job.id, reason, by=by, force=force)
    after = await context.app.workflows.get(job.id)
    if context.as_json:
        left = len(after.to_undo)
        output.print_json({"id": job.id, "canceled": done, "rolls_back": after.rolls_back, "to_undo": left})
    else:
        click.echo(f"{job.id} {_cancellation(before, after, done=done)}")


def _cancellation(before: WorkflowStatus, after: WorkflowStatus, *, done: bool) -> str:
    """What a cancellation did, and what will happen."""
    undos = output.counted(len(after.to_undo), "undo")
    if not after.rolls_back:
        if not done:
            return "was over already"
        dropped = after.to_undo and after.job.state == State.CANCELED
        return f"is canceled; not run: {undos}" if dropped else "is canceled"
    if done and not before.rolls_back:
        return f"will undo what it registered, then be canceled: {undos}"
    return f"rolls back already, {undos} left: {_way_out(after)}"


def _way_out(status: WorkflowStatus) -> str:
    forced = "--force cancels it at once, without the rest"
    if status.held is not None:
        return f"it is held, `tenure workflows resume` lets it continue; {forced}"
    if status.job.state == State.DEAD_LETTER:
        return f"it is a dead letter, `tenure jobs replay` lets it continue; {forced}"
    return forced


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
