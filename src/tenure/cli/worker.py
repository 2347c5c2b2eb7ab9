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
from tenure.cli.databases import at_a_terminal, database_of
from tenure.logs import set_up_logging
from tenure.manager.loops import run_loop, run_until_stopped
from tenure.manager.plan import one_pool
from tenure.manager.spec import ChildHello
from tenure.manager.supervisor import Supervisor
from tenure.settings import Settings
from tenure.store.migrator import migrate

log = logging.getLogger("tenure")


@click.command()
@options.database
@options.serving
def worker(
    dsn: str | None, schema: str | None, processes: int | None, health_file: str | None, embedded: bool, **serving: Any
) -> None:
    """Run jobs, in a fixed number of processes.

    A supervisor keeps the lease and starts processes that import your app and run its jobs. SIGTERM or Ctrl-C: running
    jobs may finish, the others are requeued; a second one ends that at once. SIGHUP: the processes are replaced, one at
    a time, by new ones with the current code. The schema must be there: `tenure migrate`.
    """
    stop_requests.clean_up_first()
    set_up_logs()
    spec = options.child_spec({"dsn": dsn, "schema": schema}, **serving)
    allowed = embedded or at_a_terminal()
    with database_of(spec.app, spec.folder, dsn=dsn, schema=schema, embedded=allowed, ask=False) as opened:
        settings = replace_health(opened.settings, health_file)
        if opened.home is not None:
            run_until_stopped(migrate(settings.database))  # there is no other account that would
        spec = replace(spec, name=spec.name or settings.workers.name)
        plans = one_pool(spec, settings, processes or settings.workers.default_count)

        async def supervise() -> int:
            return await Supervisor(plans, health_file=settings.workers.health_file, ready=tell_ready).run()

        stop_requests.remember()
        code = run_loop(supervise())
        stop_requests.ignore_more()
        sys.exit(code)


def replace_health(settings: Settings, file: str | None) -> Settings:
    return settings if file is None else replace(settings, workers=replace(settings.workers, health_file=file))


def set_up_logs() -> None:
    """As the settings have it, here and in every process that is started from here."""
    form = Settings.load(embedded=False).log_format
    os.environ["TENURE_LOG_FORMAT"] = form
    set_up_logging(form=form)


def tell_ready(hello: ChildHello) -> None:
    """`ready: ` is what scripts wait for."""
    kinds = sorted(hello.kinds)
    facts = {"concurrency": hello.concurrency, "queues": hello.queues, "kinds": kinds}
    if kinds:
        log.info("ready: worker process takes jobs", extra=facts)
    else:
        log.warning("ready: worker process defines no jobs, so nothing will ever run here", extra=facts)
