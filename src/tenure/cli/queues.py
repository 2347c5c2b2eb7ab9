"""`tenure queues list`, `pause` and `resume`."""

from __future__ import annotations

from difflib import get_close_matches

import click

from tenure.cli import options, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.client.overview import QueueStatus
from tenure.model.states import HELD, State

LIST = (
    Column("QUEUE", flexible=True),
    Column("PENDING", right=True),
    Column("RUNNING", right=True),
    Column("LATER", right=True),
    Column("DEAD", right=True),
    Column("COMPLETED", right=True),
    Column("FAILED", right=True),
    Column("OLDEST", right=True),
)

LATER = (State.SCHEDULED, State.RETRY, State.BLOCKED, State.WAITING)


@click.group()
def queues() -> None:
    """List, pause and resume queues."""


@queues.command("list")
@with_context
async def list_(context: CommandContext) -> None:
    """List every queue: its jobs, how many finished in the last 90 days, and the age of its oldest pending job."""
    found = await context.client.queues()
    if context.as_json:
        output.print_json({"queues": found})
        return
    if not found:
        output.note("no queues; a queue exists once a job is enqueued in it")
        return
    output.show_table(LIST, [_row(queue) for queue in found])
    for queue in found:
        if queue.paused:
            click.echo(_paused(queue))


def _row(queue: QueueStatus) -> tuple[object, ...]:
    live = queue.live
    return (
        queue.name + (" (paused)" if queue.paused else ""),
        live.get(State.PENDING, 0),
        sum(live.get(state, 0) for state in HELD),
        sum(live.get(state, 0) for state in LATER),
        live.get(State.DEAD_LETTER, 0),
        queue.finished.get(State.COMPLETED, 0),
        queue.finished.get(State.FAILED, 0),
        output.ago(queue.oldest_pending_at),
    )


def _paused(queue: QueueStatus) -> str:
    who = f" by {queue.paused_by}" if queue.paused_by else ""
    why = f": {queue.pause_reason}" if queue.pause_reason else ""
    return output.safe(f"{queue.name} was paused {output.ago(queue.paused_at)}{who}{why}")


@queues.command()
@with_context
@click.argument("name")
@click.option("--reason", help="The reason, which is recorded.")
@options.by
async def pause(context: CommandContext, name: str, reason: str | None, by: str) -> None:
    """Stop claims from a queue; running jobs continue."""
    known = [queue.name for queue in await context.client.queues()]
    await context.client.pause(name, reason=reason, by=by)
    if context.as_json:
        output.print_json({"queue": name, "paused": True, "by": by, "reason": reason})
    else:
        click.echo(f"queue {name!r} is paused; `tenure queues resume {name}` resumes it")
    if known and name not in known:
        near = get_close_matches(name, known, n=1)
        output.note(f"queue {name!r} was unknown until now" + (f"; did you mean {near[0]!r}?" if near else ""))


@queues.command()
@with_context
@click.argument("name")
async def resume(context: CommandContext, name: str) -> None:
    """Allow claims from a queue again."""
    resumed = await context.client.resume(name)
    if context.as_json:
        output.print_json({"queue": name, "paused": False, "resumed": resumed})
    else:
        click.echo(f"queue {name!r} is resumed" if resumed else f"queue {name!r} was not paused")
