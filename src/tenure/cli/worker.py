"""`tenure worker`."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from tenure.cli import options
from tenure.logs import set_up_logging
from tenure.manager.loops import run_loop
from tenure.manager.plan import one_pool
from tenure.manager.spec import Hello
from tenure.manager.supervisor import Supervisor
from tenure.settings import Settings

log = logging.getLogger("tenure")


@click.command()
@options.database
@options.serving
def worker(dsn: str | None, schema: str | None, processes: int | None, health_file: str | None, **serving: Any) -> None:
    """Run jobs, in a fixed number of processes.

    A supervisor keeps the lease and starts processes that import your app and run its jobs. SIGTERM or Ctrl-C: running
    jobs may finish, the others are handed back; a second one ends that at once. SIGHUP: the processes are replaced, one at
    a time, by such with the code of now.
    """
    set_up_logging()
    spec = options.child_spec({"dsn": dsn, "schema": schema}, **serving)
    settings = Settings.load(dsn=dsn, schema=schema, workers_health_file=health_file)
    plans = one_pool(spec, settings, processes or settings.workers.default_count)

    async def supervise() -> int:
        return await Supervisor(plans, health_file=settings.workers.health_file, ready=tell_ready).run()

    sys.exit(run_loop(supervise()))


def tell_ready(hello: Hello) -> None:
    log.info(
        "ready: %d jobs at a time from %s; kinds: %s",
        hello.concurrency,
        ", ".join(hello.queues) or "no queue",
        ", ".join(sorted(hello.kinds)) or "none, so nothing will ever run here",
    )
