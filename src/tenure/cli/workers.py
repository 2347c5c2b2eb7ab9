"""`tenure workers`, `tenure workers drain` and `resume`."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import click

from tenure.cli import exit_codes, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.client.overview import WorkerStatus

LIST = (
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

LOOK_EVERY = 0.5  # seconds, while it waits


@click.command("workers")
@with_context
async def listing(context: CommandContext) -> None:
    """List workers: how many jobs each runs of how many at most, and when it was last seen."""
    found = await context.client.workers()
    if context.as_json:
        output.print_json({"workers": found})
    elif found:
        output.show_table(LIST, [_row(worker) for worker in found])
    else:
        output.note("no workers; start one with `tenure worker`")


@click.pass_context
def _list_unless_told(ctx: click.Context, /, **given: Any) -> int | None:
    return None if ctx.invoked_subcommand else ctx.invoke(listing, **given)


HELP = """List workers: how many jobs each runs of how many at most, and when it was last seen.

`drain` takes a worker out of service without interrupting its jobs.
"""

workers = click.Group("workers", callback=_list_unless_told, params=listing.params, help=HELP, invoke_without_command=True)


@workers.command()
@with_context
@click.argument("names", nargs=-1, required=True, metavar="WORKER...")
@click.option("--wait", is_flag=True, help="Return when none of them runs a job any more.")
async def drain(context: CommandContext, names: tuple[str, ...], wait: bool) -> int:
    """Let workers claim no more jobs; those they run continue.

    WORKER is a name, a host, or the beginning of an id, as `tenure workers` shows them. All processes of the same supervisor
    drain together, also those that it starts later. They stay until you stop them: a restart, or `tenure workers resume`, makes
    them claim again.
    """
    ids = await context.client.drain_workers(*await _found(context, names))
    if not context.as_json:
        click.echo(f"{_count(len(ids))} no more jobs; `tenure workers` shows those that still run")
    while wait:
        found = [worker for worker in await context.client.workers() if worker.id in ids and worker.alive]
        if not any(worker.held for worker in found):
            break
        await asyncio.sleep(LOOK_EVERY)
    if context.as_json:
        output.print_json({"draining": True, "workers": ids})
    return exit_codes.SUCCESS


@workers.command()
@with_context
@click.argument("names", nargs=-1, required=True, metavar="WORKER...")
async def resume(context: CommandContext, names: tuple[str, ...]) -> None:
    """Let workers that drain claim jobs again."""
    ids = await context.client.resume_workers(*await _found(context, names))
    if context.as_json:
        output.print_json({"draining": False, "workers": ids})
    else:
        click.echo(f"{_count(len(ids))} jobs again")


async def _found(context: CommandContext, names: tuple[str, ...]) -> set[UUID]:
    """The living workers that are meant. An unknown name stops the command before it changes anything."""
    alive = [worker for worker in await context.client.workers() if worker.alive]
    found: set[UUID] = set()
    for name in names:
        meant = {worker.id for worker in alive if name in (worker.name, worker.host) or str(worker.id).startswith(name.lower())}
        if not meant:
            raise click.UsageError(f"no living worker is named {name!r}: `tenure workers` lists their names, hosts and ids")
        found |= meant
    return found


def _count(workers: int) -> str:
    return "1 worker process claims" if workers == 1 else f"{workers} worker processes claim"


def _row(worker: WorkerStatus) -> tuple[object, ...]:
    return (
        worker.id,
        worker.state,
        f"{worker.held}/{worker.concurrency}",
        output.ago(worker.died_at or worker.heartbeat_at),
        worker.name,
        f"{worker.host}:{worker.pid}",
        ", ".join(worker.queues),
        ", ".join(worker.capabilities) or "-",
        worker.version,
    )
