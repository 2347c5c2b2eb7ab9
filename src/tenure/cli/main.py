"""The `tenure` command: a table of sub-commands, each in its own module."""

from __future__ import annotations

import sys

import click

from tenure.cli import codes
from tenure.cli.lazy import RootGroup
from tenure.version import __version__

COMMANDS = {
    "demo": ("tenure.cli.demo:demo", "See it at work: starts a PostgreSQL, workers and jobs, and kills one of them."),
    "simulate": ("tenure.cli.simulate:simulate", "Send jobs of many kinds, and check that each ends as foretold."),
    "up": ("tenure.cli.up:up", "Run workers, as many as the work needs; without a database, start one."),
    "dev": ("tenure.cli.up:dev", "Like up, and start anew whenever the code changes."),
    "worker": ("tenure.cli.worker:worker", "Run jobs: a supervisor and its worker processes."),
    "health": ("tenure.cli.health:health", "Is the supervisor on this machine well? For probes."),
    "top": ("tenure.cli.top:top", "Watch queues, workers and leaders, live."),
    "enqueue": ("tenure.cli.enqueue:enqueue", "Hand in a job, and wait for its result if you like."),
    "jobs": ("tenure.cli.jobs:jobs", "List, show, report, cancel, retry, replay and delete jobs."),
    "watch": ("tenure.cli.watch:watch", "Follow a job until it is over."),
    "explain": ("tenure.cli.explain:explain", "Why is this job not running?"),
    "queues": ("tenure.cli.queues:queues", "List, pause and resume queues."),
    "schedules": ("tenure.cli.schedules:schedules", "List, make, change, pause, resume, run and delete schedules."),
    "limits": ("tenure.cli.limits:limits", "List, set and reset limits: how many at a time, how many in a while."),
    "workers": ("tenure.cli.fleet:workers", "Who runs jobs, and how many."),
    "leaders": ("tenure.cli.fleet:leaders", "Who does the duties that the fleet does once."),
    "stats": ("tenure.cli.stats:stats", "How many jobs there are, and what became of the others."),
    "doctor": ("tenure.cli.doctor:doctor", "What slows or stops the work, or soon will."),
    "chaos": ("tenure.cli.chaos:chaos", "Prove it: strike everything, and check that no promise was broken."),
    "migrate": ("tenure.cli.schema:migrate", "Bring the database's schema to this version."),
    "sql": ("tenure.cli.schema:sql", "Print the schema, or roles and grants, as SQL."),
    "config": ("tenure.cli.config:config", "Every setting, its value, and where that came from."),
    "completion": ("tenure.cli.completion:completion", "Print the completion script of your shell."),
}

HELP = f"""Durable background jobs on PostgreSQL.

Exit codes: {", ".join(f"{code} {meaning}" for code, meaning in codes.MEANINGS.items())}.
"""


@click.group(cls=RootGroup, table=COMMANDS, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tenure")
def cli() -> None:
    pass


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # whatever a job's text holds can be shown
    cli(prog_name="tenure")
