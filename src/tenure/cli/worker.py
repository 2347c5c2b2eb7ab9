"""`tenure worker`."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from typing import Any

import click

from tenure import stop_requests
from tenure.cli import options
from tenure.cli.database_choice import on_terminal, worker_database
from tenure.logs import set_up_logging
from tenure.manager.loops import run_loop, run_until_stopped
from tenure.manager.plan import one_pool
from tenure.manager.spec import ChildHello
from tenure.manager.supervisor import Supervisor
from tenure.model.names import is_builtin
from tenure.observe.prometheus import serving_metrics
from tenure.settings import Settings
from tenure.store.migrator import migrate

log = logging.getLogger("tenure")


@click.command()
@options.database
@options.serving
def worker(
    *,
    dsn: str | None,
    schema: str | None,
    processes: int | None,
    health_file: str | None,
    metrics_port: str | None,
    embedded: bool,
    **serving: Any,
) -> None:
    """Run jobs, in a fixed number of processes.

    A supervisor renews the lease and starts processes that import your app and run its jobs. SIGTERM or Ctrl-C: waits for
    running jobs, and requeues those that do not finish in time; a second signal stops at once. SIGHUP: replaces the
    processes, one at a time, by new ones with the current code. The schema must exist: see `tenure migrate`.
    """
    stop_requests.clean_up_first()
    configure_logging()
    spec = options.child_spec({"dsn": dsn, "schema": schema}, **serving)
    allowed = embedded or on_terminal()
    with worker_database(spec.app, spec.folder, dsn=dsn, schema=schema, embedded=allowed, load_app=False) as opened:
        settings = with_health_file(opened.settings, health_file)
        port = metrics_port or settings.workers.metrics_port
        if opened.home is not None:
            run_until_stopped(migrate(settings.database))  # no other account would migrate an embedded server
        spec = replace(spec, name=spec.name or settings.workers.name, counts_runs=port is not None)
        plans = one_pool(spec, settings, processes or settings.workers.default_count)

        async def supervise() -> int:
            supervisor = Supervisor(plans, health_file=settings.workers.health_file, ready=log_ready)
            async with serving_metrics(port, supervisor.measure):
                return await supervisor.run()

        stop_requests.remember()
        code = run_loop(supervise())
        stop_requests.ignore_more()
        sys.exit(code)


def with_health_file(settings: Settings, file: str | None) -> Settings:
    return settings if file is None else replace(settings, workers=replace(settings.workers, health_file=file))


def configure_logging() -> None:
    """In the format that is set, in this process and in every process that it starts."""
    form = Settings.load(embedded=False).log_format
    os.environ["TENURE_LOG_FORMAT"] = form
    set_up_logging(form=form)


def log_ready(hello: ChildHello) -> None:
    """Scripts wait for `ready: `."""
    kinds = sorted(kind for kind in hello.kinds if not is_builtin(kind))
    facts = {"child_pid": hello.pid, "concurrency": hello.concurrency, "queues": hello.queues, "kinds": kinds}
    if kinds:
        log.info("ready: worker process takes jobs", extra=facts)
    else:
        log.warning("ready: worker process defines no jobs, so it will run none", extra=facts)
