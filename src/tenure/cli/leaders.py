"""`tenure leaders`."""

from __future__ import annotations

from datetime import datetime

import click

from tenure.cli import output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.client.overview import LeaderStatus

LEADERS = (
    Column("DUTY"),
    Column("PROCESS", flexible=True),
    Column("STATE"),
    Column("TERM", right=True),
    Column("SINCE", right=True),
    Column("SEEN", right=True, optional=True),
    Column("RAN", right=True),
    Column("ROUNDS", right=True, optional=True),
    Column("ITEMS", right=True, optional=True),
    Column("ERRORS", right=True, optional=True),
    Column("HOLDER", optional=True),
)


@click.command()
@with_context
async def leaders(context: CommandContext) -> None:
    """List the duties that one process at a time performs for the whole fleet, such as stager and reaper, and their holders.

    A holder is stuck if it sends heartbeats but the next round of its duty is half a minute overdue. A shared duty is done by
    every supervisor (leader.strategy "shared").
    """
    found = await context.client.leaders()
    if context.as_json:
        output.print_json({"leaders": found})
    elif found:
        output.show_table(LEADERS, [_leader(leader) for leader in found])
    else:
        output.note("no leaders; start a worker with `tenure worker`")


def _leader(leader: LeaderStatus) -> tuple[object, ...]:
    about = leader.metadata
    times = output.ago(leader.acquired_at), output.ago(leader.heartbeat_at)
    last_run = output.ago(datetime.fromisoformat(about["last_run"])) if "last_run" in about else "-"
    record = about.get("runs", 0), about.get("items", 0), about.get("errors", 0)
    where = f"{about['host']}:{about['pid']}" if "host" in about else leader.holder
    if leader.shared:  # its row records no rounds, and names the process that last confirmed it
        return leader.duty, "every supervisor", leader.state, leader.term, *times, "-", "-", "-", "-", "-"
    return leader.duty, where, leader.state, leader.term, *times, last_run, *record, leader.holder
