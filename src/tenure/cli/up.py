"""`tenure up` and `tenure dev`: workers, and a database if there is none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
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
from tenure.manager.reload import watch_files
from tenure.manager.spec import ChildSpec
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


@click.command()
@options.database
@options.serving
def up(dsn: str | None, schema: str | None, processes: int | None, **serving: Any) -> None:
    """Run workers; without a database, start one in .tenure first. The schema is brought up to date."""
    sys.exit(_run(dsn, schema, processes, reload=False, **serving))


@click.command()
@options.database
@options.serving
def dev(dsn: str | None, schema: str | None, processes: int | None, **serving: Any) -> None:
    """Like up, and start the worker processes anew whenever a Python file here changes."""
    sys.exit(_run(dsn, schema, processes, reload=True, **serving))


def _run(dsn: str | None, schema: str | None, processes: int | None, *, reload: bool, **serving: Any) -> int:
    set_up_logging()
    spec = options.child_spec({"schema": schema}, **serving)
    with database_or_embedded(dsn or dsn_in_code(spec.app, spec.folder), schema) as settings:
        asyncio.run(migrate(settings.place))
        spec = replace(spec, flags={**spec.flags, "dsn": settings.dsn})
        return run_loop(_supervise(spec, processes or settings.workers.default_count, reload=reload))


async def _supervise(spec: ChildSpec, count: int, *, reload: bool) -> int:
    supervisor = Supervisor(spec, count, ready=tell_ready)
    watching = asyncio.create_task(watch_files(Path(spec.folder), supervisor.restart)) if reload else None
    try:
        return await supervisor.run()
    finally:
        if watching is not None:
            watching.cancel()
