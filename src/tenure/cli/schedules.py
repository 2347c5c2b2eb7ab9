"""`tenure schedules`: the group and its commands."""

from __future__ import annotations

import click

from tenure.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("tenure.cli.schedules_show:list_", "List schedules, and when each runs next."),
    "show": ("tenure.cli.schedules_show:show", "Show a schedule, its next times, and the outcomes of the last ones."),
    "next": ("tenure.cli.schedules_show:next_", "Print the next times of a schedule."),
    "create": ("tenure.cli.schedules_act:create", "Create a schedule."),
    "change": ("tenure.cli.schedules_act:change", "Change a schedule that no code declares."),
    "pause": ("tenure.cli.schedules_act:pause", "Stop planning new times."),
    "resume": ("tenure.cli.schedules_act:resume", "Plan new times again."),
    "run": ("tenure.cli.schedules_act:run", "Enqueue a job of a schedule now."),
    "delete": ("tenure.cli.schedules_act:delete", "Delete a schedule that no code declares."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def schedules() -> None:
    """List, create, change, pause, resume, run and delete schedules."""
