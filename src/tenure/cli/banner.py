"""The first lines that `tenure dev` and `tenure up` print: what runs, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from tenure.cli.database_choice import OpenedDatabase
from tenure.manager.ask import JobFacts
from tenure.store.dsn import without_password

MAX_NAMES = 8


def lines(opened: OpenedDatabase, app: str, processes: int, web: str | None, *, reload: bool, named: bool) -> Iterator[str]:
    """`named`: the app was given on the command line, so `tenure enqueue` needs it too."""
    jobs = opened.facts.jobs if opened.facts else []
    queues = sorted({job.queue for job in jobs} | {"default"})
    restarts = ", restarted when a Python file changes" if reload else ""
    yield f"database   {_database(opened)}"
    yield f"jobs       {_some([job.name for job in jobs]) or 'none yet'}, from {app}"
    yield f"workers    {processes} {'process' if processes == 1 else 'processes'} for queue {_some(queues)}{restarts}"
    if web is not None:
        yield f"web        {web}"
    yield f"next       in another terminal: {enqueue_command(jobs, app if named else None)}"
    yield "           Ctrl-C here stops everything"


def enqueue_command(jobs: Sequence[JobFacts], app: str | None) -> str:
    """A command that runs a job; the simplest job of the app."""
    more = [*(["--app", app] if app else []), "--wait"]
    for job in sorted(jobs, key=lambda job: job.example is None):
        if job.example is None:
            return shlex.join(["tenure", "enqueue", job.name]) + " '{...}' " + shlex.join(more)
        words = [word for value in job.example for word in ("--arg", value)]
        return shlex.join(["tenure", "enqueue", job.name, *words, *more])
    return "define a job first: @app.job above a function"


def _database(opened: OpenedDatabase) -> str:
    if opened.home is not None:
        return f"an embedded PostgreSQL in {opened.home}; programs in this directory find it automatically"
    return without_password(opened.settings.dsn or "") or "as set by the PG* variables"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    return f"{shown} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else shown
