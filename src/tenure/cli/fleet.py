"""`tenure workers` and `tenure leaders`."""

from __future__ import annotations

from datetime import datetime

import click

from tenure.cli import output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.client.overview import LeaderStatus, WorkerStatus

WORKERS = (
    Column("WORKER"),
    Column("STATE"),
    Column("JOBS", right=True),
    Column("SEEN", right=True),
    Column("NAME", flexible=True),
    Column("PROCESS", flexible=True, optional=True),
    Column("QUEUES", flexible=True, optional=True),
    Column("CAPABILITIES", flexible=True, optional=True),
    Column("VERSION", optional=True),
)

LEADERS = (
    Column("DUTY"),
    Column("HOLDER"),
    Column("STATE"),
    Column("TERM", right=True),
    Column("SINCE", right=True),
    Column("SEEN", right=True, optional=True),
    Column("RAN", right=True),
    Column("ROUNDS", right=True, optional=True),
    Column("ITEMS", right=True, optional=True),
    Column("ERRORS", right=True, optional=True),
    Column("PROCESS", flexible=True),
)


@click.command()
@with_context
async def workers(context: CommandContext) -> None:
    """List workers: how many jobs each runs of how many at most, and when it was last seen."""
    found = await context.client.workers()
    if context.as_json:
        output.print_json({"workers": found})
    elif found:
        output.show_table(WORKERS, [_worker(worker) for worker in found])
    else:
        output.note("no workers; start one with `tenure worker`")


def _worker(worker: WorkerStatus) -> tuple[object, ...]:
    return (
        worker.id,
        "alive" if worker.alive else (worker.died_how or "late"),
        f"{worker.held}/{worker.concurrency}",
        output.ago(worker.died_at or worker.heartbeat_at),
        worker.name,
        f"{worker.host}:{worker.pid}",
        ", ".join(worker.queues),
        ", ".join(worker.capabilities) or "-",
        worker.version,
    )


@click.command()
@with_context
async def leaders(context: CommandContext) -> None:
    """List the duties that one process at a time performs for the whole fleet, such as stager and reaper, and their holders.

    A holder is stuck if it sends heartbeats but the next round of its duty is half a minute overdue.
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
    where = f"{about['host']}:{about['pid']}" if "host" in about else None
    return leader.duty, leader.holder, leader.state, leader.term, *times, last_run, *record, where
