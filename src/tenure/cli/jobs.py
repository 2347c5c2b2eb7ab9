"""`tenure jobs`: the group and its commands."""

from __future__ import annotations

import click

from tenure.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("tenure.cli.jobs_show:list_", "List the newest jobs that match."),
    "show": ("tenure.cli.jobs_show:show", "Show the current state of a job."),
    "report": ("tenure.cli.jobs_show:report", "Show a job's complete history: attempts, errors, log, children."),
    "cancel": ("tenure.cli.jobs_act:cancel", "Cancel jobs; running ones are aborted."),
    "retry": ("tenure.cli.jobs_act:retry", "Run jobs as soon as possible."),
    "replay": ("tenure.cli.jobs_act:replay", "Run dead letters again, with new input if needed."),
    "delete": ("tenure.cli.jobs_act:delete", "Delete jobs and everything stored with them."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def jobs() -> None:
    """List, show, report, cancel, retry, replay and delete jobs.

    A job is identified by its id or by a unique prefix of at least eight characters.
    """
