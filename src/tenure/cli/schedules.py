"""`tenure schedules`: a table of its own."""

from __future__ import annotations

import click

from tenure.cli.lazy import LazyGroup

COMMANDS = {
    "list": ("tenure.cli.schedule_looks:list_", "All schedules, and when each runs next."),
    "show": ("tenure.cli.schedule_looks:show", "A schedule, its next runs, and what became of the last ones."),
    "next": ("tenure.cli.schedule_looks:next_", "When a schedule runs next."),
    "create": ("tenure.cli.schedule_moves:create", "Make a schedule."),
    "change": ("tenure.cli.schedule_moves:change", "Change a schedule that was made by hand."),
    "pause": ("tenure.cli.schedule_moves:pause", "Plan nothing more of a schedule."),
    "resume": ("tenure.cli.schedule_moves:resume", "Let a schedule go on."),
    "run": ("tenure.cli.schedule_moves:run", "Hand in a job of a schedule now."),
    "delete": ("tenure.cli.schedule_moves:delete", "Remove a schedule that no code declares."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def schedules() -> None:
    """List, make, change, pause, resume, run and delete schedules."""
