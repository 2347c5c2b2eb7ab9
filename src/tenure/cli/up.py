"""`tenure up` and `tenure dev`: workers, and a database if there is none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tenure.cli import options
from tenure.cli.worker import tell_ready
from tenure.embedded import EmbeddedServer
from tenure.logs import set_up_logging
from tenure.manager.ask import dsn_in_code
from tenure.manager.loops import run_loop
from tenure.manager.plan import one_pool, pools_of
from tenure.manager.reload import watch_files
from tenure.manager.supervisor import Supervisor
from tenure.settings import Settings
from tenure.store.migrator import migrate

HOME = Path(".tenure")


@contextmanager
def database_or_embedded(dsn: str | None, schema: str | None) -> Iterator[Settings]:
    """The database that is set, or one of our own for as long as it is needed."""
    settings = Settings.load(dsn=dsn, schema=schema)
    if settings.dsn is not None:
        yield settings
        return
    with EmbeddedServer(HOME) as server:
        click.echo(f"no database is set: using an embedded PostgreSQL in {HOME}/ (for development, not for production)", err=True)
        click.echo(f"  TENURE_DSN='{server.dsn}'", err=True)
        yield Settings.load(dsn=server.dsn, schema=schema)


def manages(command: options.Command) -> options.Command:
    """Options of both."""
    for option in (
        click.option("--max-processes", type=click.IntRange(1), help="As many as there may be when jobs wait (8)."),
        click.option("--pool", "pools", multiple=True, help="Only this pool of tenure.toml; may be given several times."),
    ):
        command = option(command)
    return options.database(options.serving(command))


@click.command()
@manages
def up(**given: Any) -> None:
    """Run workers, as many as the work needs; without a database, start one in .tenure first.

    Pools and their sizes are those of [workers] and [workers.NAME] in tenure.toml. --queues, --capabilities, --concurrency,
    --processes and --max-processes make one pool instead. The schema is brought up to date.
    """
    sys.exit(_run(reload=False, **given))


@click.command()
@manages
def dev(**given: Any) -> None:
    """Like up, and replace the worker processes whenever a Python file here changes."""
    sys.exit(_run(reload=True, **given))


def _run(
    *,
    reload: bool,
    dsn: str | None,
    schema: str | None,
    processes: int | None,
    max_processes: int | None,
    pools: tuple[str, ...],
    health_file: str | None,
    **serving: Any,
) -> int:
    flagged = processes or max_processes or any(serving[name] for name in ("queues", "capabilities", "concurrency"))
    if flagged and pools:
        raise click.UsageError("--pool takes a pool as tenure.toml has it: leave out the options that describe one")
    set_up_logging()
    spec = options.child_spec({"schema": schema}, **serving)
    with database_or_embedded(dsn or dsn_in_code(spec.app, spec.folder), schema) as settings:
        asyncio.run(migrate(settings.place))
        spec = replace(spec, flags={**spec.flags, "dsn": settings.dsn})
        plans = one_pool(spec, settings, processes, max_processes) if flagged else pools_of(settings, spec, pools)
        block = settings.workers
        return run_loop(
            _supervise(
                lambda: Supervisor(
                    plans,
                    scale_interval=block.scale_interval_ms / 1000,
                    health_file=health_file or block.health_file,
                    ready=tell_ready,
                ),
                Path(spec.folder) if reload else None,
            )
        )


async def _supervise(make: Callable[[], Supervisor], watched: Path | None) -> int:
    supervisor = make()
    watching = asyncio.create_task(watch_files(watched, supervisor.roll)) if watched else None
    try:
        return await supervisor.run()
    finally:
        if watching is not None:
            watching.cancel()
