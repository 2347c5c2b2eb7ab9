"""`tenure workers` and `tenure leaders`."""

from __future__ import annotations

from datetime import datetime

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
    Column("NAME", flexible=True),
    Column("PROCESS", flexible=True, spare=True),
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
    Column("RAN", right=True),
    Column("ROUNDS", right=True, spare=True),
    Column("ITEMS", right=True, spare=True),
    Column("ERRORS", right=True, spare=True),
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
        worker.name,
        f"{worker.host}:{worker.pid}",
        ", ".join(worker.queues),
        ", ".join(worker.capabilities) or "-",
        worker.version,
    )


@click.command()
@asks
async def leaders(ask: Asker) -> None:
    """Who does the duties that the fleet does once: its stager, its reaper and so on.

    A holder is stuck when its heart beats, but the round it announced is half a minute overdue.
    """
    found = await ask.client.leaders()
    if ask.as_json:
        output.emit({"leaders": found})
    elif found:
        output.show_table(LEADERS, [_leader(leader) for leader in found])
    else:
        output.say("nobody leads: start a worker with `tenure worker`, and one of them will")


def _leader(leader: LeaderStatus) -> tuple[object, ...]:
    about = leader.metadata
    times = output.ago(leader.acquired_at), output.ago(leader.heartbeat_at)
    last_run = output.ago(datetime.fromisoformat(about["last_run"])) if "last_run" in about else "-"
    record = about.get("runs", 0), about.get("items", 0), about.get("errors", 0)
    where = f"{about['host']}:{about['pid']}" if "host" in about else None
    return leader.duty, leader.holder, leader.state, leader.term, *times, last_run, *record, where
