"""`tenure workers` and `tenure leaders`."""

from __future__ import annotations

import click

from tenure.cli import output
from tenure.cli.asking import Asker, asks
from tenure.cli.output import Column
from tenure.client.overview import LeaderStatus, WorkerStatus

WORKERS = (
    Column("WORKER"),
    Column("STATE"),
    Column("JOBS", right=True),
    Column("SEEN", right=True),
    Column("PROCESS", flexible=True),
    Column("QUEUES", flexible=True, spare=True),
    Column("CAPABILITIES", flexible=True, spare=True),
    Column("VERSION", spare=True),
)

LEADERS = (
    Column("DUTY"),
    Column("HOLDER"),
    Column("STATE"),
    Column("TERM", right=True),
    Column("SINCE", right=True),
    Column("SEEN", right=True, spare=True),
    Column("PROCESS", flexible=True),
)


@click.command()
@asks
async def workers(ask: Asker) -> None:
    """Who runs jobs: how many of how many at a time, and when each was last seen."""
    found = await ask.client.workers()
    if ask.as_json:
        output.emit({"workers": found})
    elif found:
        output.show_table(WORKERS, [_worker(worker) for worker in found])
    else:
        output.say("there are no workers: start one with `tenure worker`")


def _worker(worker: WorkerStatus) -> tuple[object, ...]:
    return (
        worker.id,
        "alive" if worker.alive else (worker.died_how or "late"),
        f"{worker.held}/{worker.concurrency}",
        output.ago(worker.died_at or worker.heartbeat_at),
        f"{worker.host}:{worker.pid}",
        ", ".join(worker.queues),
        ", ".join(worker.capabilities) or "-",
        worker.version,
    )


@click.command()
@asks
async def leaders(ask: Asker) -> None:
    """Who does the duties that the fleet does once: its stager, its reaper and so on."""
    found = await ask.client.leaders()
    if ask.as_json:
        output.emit({"leaders": found})
    elif found:
        output.show_table(LEADERS, [_leader(leader) for leader in found])
    else:
        output.say("nobody leads: start a worker with `tenure worker`, and one of them will")


def _leader(leader: LeaderStatus) -> tuple[object, ...]:
    state = "holds" if leader.holds else "ran out"
    times = output.ago(leader.acquired_at), output.ago(leader.heartbeat_at)
    where = leader.metadata
    return leader.duty, leader.holder, state, leader.term, *times, f"{where['host']}:{where['pid']}" if where else None
