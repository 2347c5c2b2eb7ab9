"""`tenure workflows`: the group and its commands."""

from __future__ import annotations

import click

from tenure.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("tenure.cli.workflows_show:list_", "List the newest workflows."),
    "show": ("tenure.cli.workflows_show:show", "Show a workflow with its steps and what it waits for."),
    "signal": ("tenure.cli.workflows_act:signal", "Send a signal to a workflow."),
    "emit": ("tenure.cli.workflows_act:emit", "Send an event to all workflows that wait for it."),
    "cancel": ("tenure.cli.workflows_act:cancel", "Cancel a workflow; it undoes what it has done."),
    "resume": ("tenure.cli.workflows_act:resume", "Let a held workflow continue."),
    "fork": ("tenure.cli.workflows_act:fork", "Run a workflow again from one of its steps."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def workflows() -> None:
    """List, show, signal, cancel, resume and fork workflows; emit events.

    A workflow is identified by the id of its job or by a unique prefix of at least eight characters.
    """
