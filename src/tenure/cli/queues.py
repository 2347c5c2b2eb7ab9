"""`tenure queues list`, `pause` and `resume`."""

from __future__ import annotations

from difflib import get_close_matches

import click

from tenure.cli import options, output
from tenure.cli.asking import Asker, asks
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
@asks
async def list_(ask: Asker) -> None:
    """Every queue of which anything is known: its jobs, what it finished in 90 days, and since when its oldest job is pending."""
    found = await ask.client.queues()
    if ask.as_json:
        output.emit({"queues": found})
        return
    if not found:
        output.say("there are no queues: a queue is there once a job is handed in")
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
@asks
@click.argument("name")
@click.option("--reason", help="Why, for the record.")
@options.by
async def pause(ask: Asker, name: str, reason: str | None, by: str) -> None:
    """From now on nothing of this queue is started; what runs goes on."""
    known = [queue.name for queue in await ask.client.queues()]
    await ask.client.pause(name, reason=reason, by=by)
    if ask.as_json:
        output.emit({"queue": name, "paused": True, "by": by, "reason": reason})
    else:
        click.echo(f"queue {name!r} is paused; `tenure queues resume {name}` lets it go on")
    if known and name not in known:
        near = get_close_matches(name, known, n=1)
        output.say(f"nothing was known of queue {name!r} before" + (f"; did you mean {near[0]!r}?" if near else ""))


@queues.command()
@asks
@click.argument("name")
async def resume(ask: Asker, name: str) -> None:
    """The queue goes on."""
    resumed = await ask.client.resume(name)
    if ask.as_json:
        output.emit({"queue": name, "paused": False, "resumed": resumed})
    else:
        click.echo(f"queue {name!r} goes on" if resumed else f"queue {name!r} was not paused")
