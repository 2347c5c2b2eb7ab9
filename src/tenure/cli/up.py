"""`tenure up` and `tenure dev`: workers, as many as the load requires, and a web server."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tenure import stop_requests
from tenure.cli import banner, options
from tenure.cli.database_choice import OpenedDatabase, on_terminal, worker_database
from tenure.cli.web_process import WebProcess, start_web, web_options
from tenure.cli.worker import configure_logging, log_ready
from tenure.manager.loops import run_loop, run_until_stopped
from tenure.manager.plan import one_pool, pools_of
from tenure.manager.reload import watch_files
from tenure.manager.spec import ChildSpec
from tenure.manager.supervisor import Supervisor
from tenure.model.errors import ConfigError, StoreUnavailable
from tenure.observe.prometheus import serving_metrics
from tenure.outages import failures
from tenure.periodic import backoff
from tenure.settings import Settings
from tenure.store.faults import ConnectionRejected
from tenure.store.migrator import MigrationBlocked, MigrationRefused, check_schema, migrate
from tenure.store.target import DatabaseTarget

log = logging.getLogger("tenure")


def manager_options(command: options.Command) -> options.Command:
    """The options that both share."""
    for option in (
        click.option("--max-processes", type=click.IntRange(1), help="The most worker processes while jobs wait (8)."),
        click.option("--pool", "pools", multiple=True, help="Run only this pool of tenure.toml; repeatable."),
    ):
        command = option(command)
    return options.database(options.serving(web_options(command)))


@click.command()
@manager_options
def up(**given: Any) -> None:
    """Run workers, as many as the load requires, and a web server on port 8080 of this machine.

    Pools and their sizes are set in [workers] and [workers.NAME] of tenure.toml. --queues, --capabilities, --concurrency,
    --processes and --max-processes define a single pool instead. The schema is migrated if this account may do that. If no
    database is set, a running embedded PostgreSQL of this project is used; one is started in .tenure only at a terminal or
    with --embedded. The web server answers requests from this machine only, as `tenure web` does; if its port is taken, the
    workers run without it.
    """
    sys.exit(_run(reload=False, **given))


@click.command()
@manager_options
def dev(**given: Any) -> None:
    """Run workers and a web server for development: restart them when a Python file changes, and start a database if none is
    set."""
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
    metrics_port: str | None,
    embedded: bool,
    web_port: int | None,
    no_web: bool,
    **serving: Any,
) -> int:
    flagged = processes or max_processes or any(serving[name] for name in ("queues", "capabilities", "concurrency"))
    if flagged and pools:
        raise click.UsageError("--pool runs a pool of tenure.toml: omit the options that define a pool")
    stop_requests.clean_up_first()
    configure_logging()
    if reload:
        _share_duties()
    spec = options.child_spec({"schema": schema}, **serving)
    with worker_database(spec.app, spec.folder, dsn=dsn, schema=schema, embedded=embedded or reload or on_terminal()) as opened:
        settings = opened.settings
        run_until_stopped(_migrate_when_reachable(settings.database))
        block = settings.workers
        metrics_port = metrics_port or block.metrics_port
        flags = {**spec.flags, "dsn": settings.dsn}
        spec = replace(spec, flags=flags, name=spec.name or block.name, counts_runs=metrics_port is not None)
        plans = one_pool(spec, settings, processes, max_processes) if flagged else pools_of(settings, spec, pools)
        port = 0 if no_web else settings.web_listen if web_port is None else web_port
        web = start_web(settings, spec.app, spec.folder, port) if port else None
        _print_banner(
            opened, spec, sum(plan.default_count for plan in plans), web, reload=reload, named=serving["app"] is not None
        )
        stop_requests.remember()
        code = run_loop(
            _supervise(
                lambda: Supervisor(
                    plans,
                    scale_interval=block.scale_interval_ms / 1000,
                    health_file=health_file or block.health_file,
                    ready=log_ready,
                ),
                Path(spec.folder) if reload else None,
                web if isinstance(web, WebProcess) else None,
                metrics_port,
            )
        )
        stop_requests.ignore_more()
        return code


def _share_duties() -> None:
    """In development every process performs all duties, unless a strategy is set: there is one supervisor, so no leader is
    needed."""
    if Settings.explained([], embedded=False)[1]["leader_strategy"] == "default":
        os.environ["TENURE_LEADER_STRATEGY"] = "shared"


def _print_banner(
    opened: OpenedDatabase, spec: ChildSpec, processes: int, web: WebProcess | str | None, *, reload: bool, named: bool
) -> None:
    """For a person at a terminal. The log of a service has the same facts in the lines of its processes."""
    if reload or on_terminal():
        shown = f"{web.url} (dashboard; API below /_api)" if isinstance(web, WebProcess) else web and f"none: {web}"
        for line in banner.lines(opened, spec.app, processes, shown, reload=reload, named=named):
            click.echo(line, err=True)
    elif isinstance(web, WebProcess):
        log.info("web server listens", extra={"url": web.url})
    elif web is not None:
        log.warning("no web server; the workers run without it", extra={"reason": web})


async def _migrate_when_reachable(database: DatabaseTarget) -> None:
    """Waits while PostgreSQL is down. Errors that a person must fix are raised at once, as in `tenure worker`."""
    attempts = 0
    while True:
        try:
            await _migrate_if_allowed(database)
            return
        except MigrationBlocked:
            raise  # it has been retried already
        except ConnectionRejected as error:
            raise ConfigError(str(error)) from error
        except StoreUnavailable as error:
            attempts += 1
            failures.failed("migrate", error)
        await asyncio.sleep(backoff(attempts))


async def _migrate_if_allowed(database: DatabaseTarget) -> None:
    """An account that may not migrate can still run workers if the schema is recent enough."""
    try:
        await migrate(database)
    except MigrationRefused as refused:
        await check_schema(database)
        log.info("schema not migrated by this account; it is recent enough", extra={"reason": str(refused)})


async def _supervise(
    make: Callable[[], Supervisor], watched: Path | None, web: WebProcess | None, metrics_port: str | None
) -> int:
    supervisor = make()

    def replace_all() -> None:
        supervisor.roll()
        if web is not None:
            web.restart()

    beside = [asyncio.create_task(watch_files(watched, replace_all))] if watched else []
    if web is not None:
        beside.append(asyncio.create_task(web.keep()))
    try:
        async with serving_metrics(metrics_port, supervisor.measure):
            return await supervisor.run()
    finally:
        for task in beside:
            task.cancel()
        if web is not None:
            web.stop()
