"""The first lines of `tenure dev` and `tenure up`: what runs, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from tenure.cli.databases import Opened
from tenure.manager.ask import JobFacts
from tenure.store.dsn import without_password

MOST_NAMES = 8


def lines(opened: Opened, app: str, processes: int, *, reload: bool, named: bool) -> Iterator[str]:
    """`named`: the app was given on the command line, and must be again."""
    jobs = opened.facts.jobs if opened.facts else []
    queues = sorted({job.queue for job in jobs} | {"default"})
    restarts = ", restarted when a Python file changes" if reload else ""
    yield f"database   {_database(opened)}"
    yield f"jobs       {_some([job.name for job in jobs]) or 'none yet'}, from {app}"
    yield f"workers    {processes} {'process' if processes == 1 else 'processes'} for queue {_some(queues)}{restarts}"
    yield f"next       in another terminal: {enqueue_command(jobs, app if named else None)}"
    yield "           Ctrl-C here stops everything"


def enqueue_command(jobs: Sequence[JobFacts], app: str | None) -> str:
    """What to type to see a job run; the simplest one that there is."""
    more = [*(["--app", app] if app else []), "--wait"]
    for job in sorted(jobs, key=lambda job: job.example is None):
        if job.example is None:
            return shlex.join(["tenure", "enqueue", job.name]) + " '{...}' " + shlex.join(more)
        words = [word for value in job.example for word in ("--arg", value)]
        return shlex.join(["tenure", "enqueue", job.name, *words, *more])
    return "define a job first: @app.job above a function"


def _database(opened: Opened) -> str:
    if opened.home is not None:
        return f"an embedded PostgreSQL in {opened.home}; programs in this folder find it by themselves"
    return without_password(opened.settings.dsn or "") or "as the PG* variables say"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown
