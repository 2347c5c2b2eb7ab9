"""`tenure chains`: the group and its commands."""

from __future__ import annotations

import click

from tenure.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("tenure.cli.chains_commands:list_", "List the newest chains."),
    "show": ("tenure.cli.chains_commands:show", "Show a chain: its links, their states, and what they wait for."),
    "complete": ("tenure.cli.chains_commands:complete", "Complete a chain without a worker."),
    "delete": ("tenure.cli.chains_commands:delete", "Delete chains with all their links."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def chains() -> None:
    """List, show, complete and delete chains.

    A chain is identified by the id of one of its jobs or by a unique prefix of at least eight characters.
    """
