"""`tenure jobs`: a table of its own."""

from __future__ import annotations

import click

from tenure.cli.lazy import LazyGroup

COMMANDS = {
    "list": ("tenure.cli.look:list_", "The newest jobs that fit."),
    "show": ("tenure.cli.look:show", "A job as it stands."),
    "report": ("tenure.cli.look:report", "A job's whole life: attempts, errors, log, children."),
    "cancel": ("tenure.cli.decide:cancel", "End jobs; runs under way are aborted."),
    "retry": ("tenure.cli.decide:retry", "Run jobs as soon as they can be."),
    "replay": ("tenure.cli.decide:replay", "Run dead letters again, with other input if need be."),
    "delete": ("tenure.cli.decide:delete", "Remove jobs and all that is kept of them."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def jobs() -> None:
    """List, show, report, cancel, retry, replay and delete jobs.

    A job is named by its id, or by the first characters of it: eight or more, as many as it takes.
    """
