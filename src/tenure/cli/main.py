"""The `tenure` command and the table of its sub-commands."""

from __future__ import annotations

import sys

import click

from tenure.cli import exit_codes
from tenure.cli.command_groups import RootGroup
from tenure.version import __version__

GROUPS = {
    "Start": {
        "init": ("tenure.cli.init:init", "Start a project: write a small jobs.py and tenure.toml."),
        "dev": ("tenure.cli.up:dev", "Run workers and a web server for development; restarts on changes."),
        "demo": ("tenure.cli.demo:demo", "Watch Tenure at work: starts a PostgreSQL, workers and jobs, and kills a worker."),
    },
    "Run workers": {
        "up": ("tenure.cli.up:up", "Run workers, as many as the load requires, and a web server."),
        "worker": ("tenure.cli.worker:worker", "Run workers, a fixed number of processes."),
        "health": ("tenure.cli.health:health", "Check the supervisor on this machine. For probes."),
    },
    "Jobs": {
        "enqueue": ("tenure.cli.enqueue:enqueue", "Enqueue a job, and optionally wait for its result."),
        "jobs": ("tenure.cli.jobs:jobs", "List, show, report, cancel, retry, replay and delete jobs."),
        "workflows": ("tenure.cli.workflows:workflows", "List, show, signal, cancel, resume and fork workflows; emit events."),
        "chains": ("tenure.cli.chains:chains", "List, show, complete and delete chains."),
        "watch": ("tenure.cli.watch:watch", "Follow a job until it is finished."),
        "explain": ("tenure.cli.explain:explain", "Show why a job is not running."),
    },
    "Queues, schedules, limits": {
        "queues": ("tenure.cli.queues:queues", "List, pause and resume queues."),
        "schedules": ("tenure.cli.schedules:schedules", "List, create, change, pause, resume, run and delete schedules."),
        "limits": ("tenure.cli.limits:limits", "List, set and reset limits on concurrency and rate."),
    },
    "Monitor": {
        "top": ("tenure.cli.top:top", "Watch queues, workers and leaders, live."),
        "workers": ("tenure.cli.workers:workers", "List, drain and resume the processes that run jobs."),
        "leaders": ("tenure.cli.leaders:leaders", "List the leader's duties and their holders."),
        "stats": ("tenure.cli.stats:stats", "Count jobs by state and outcome; rates and latencies."),
        "doctor": ("tenure.cli.doctor:doctor", "Find what slows or stops jobs, or soon will."),
    },
    "Web": {
        "web": ("tenure.cli.web:web", "Serve the dashboard, the REST API, live updates and metrics."),
        "tokens": ("tenure.cli.tokens:tokens", "Create, list and revoke tokens of the web API."),
        "typegen": ("tenure.cli.typegen:typegen", "Write TypeScript types and trackers for the kinds of jobs."),
    },
    "Database and settings": {
        "migrate": ("tenure.cli.schema:migrate", "Migrate the database's schema to this version."),
        "sql": ("tenure.cli.schema:sql", "Print the schema, or roles and grants, as SQL."),
        "config": ("tenure.cli.config:config", "Show every setting, its value, and where that came from."),
        "completion": ("tenure.cli.completion:completion", "Print the completion script for your shell."),
    },
    "Test Tenure itself": {
        "bench": (
            "tenure.cli.bench:bench",
            "Measure this machine and PostgreSQL with jobs that do nothing, in about 20 seconds.",
        ),
        "simulate": ("tenure.cli.simulate:simulate", "Enqueue jobs of many kinds, and check that each ends as expected."),
        "chaos": ("tenure.cli.chaos:chaos", "Inject faults everywhere, and check that no promise is broken."),
    },
}

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

HELP = f"""Durable background jobs and workflows on PostgreSQL.

Exit codes: {", ".join(f"{code} {meaning}" for code, meaning in exit_codes.MEANINGS.items())}.
"""


@click.group(
    cls=RootGroup,
    table=COMMANDS,
    sections={title: list(group) for title, group in GROUPS.items()},
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tenure")
def cli() -> None:
    pass


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # so that any text of a job can be printed
    cli(prog_name="tenure")
