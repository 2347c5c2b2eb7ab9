"""`tenure chaos`: the group and its commands."""

from __future__ import annotations

import click

from tenure.cli.command_groups import LazyGroup

COMMANDS = {
    "run": ("tenure.cli.chaos_commands:run", "Inject faults into real workers and a real PostgreSQL, and check the promises."),
    "failover": ("tenure.cli.chaos_commands:failover", "Kill a primary whose standby lags, and check the promises."),
    "check": ("tenure.cli.chaos_commands:check", "Check a recorded ledger."),
    "plan": ("tenure.cli.chaos_commands:plan", "Print which faults a seed gives, and when."),
    "faults": ("tenure.cli.chaos_commands:faults", "List the kinds of faults."),
    "drills": ("tenure.cli.chaos_drills:drills", "Measure recovery times: restarts, kills, shutdowns."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def chaos() -> None:
    """Inject faults everywhere, and check that no promise is broken.

    Uses its own embedded PostgreSQL, or a throwaway database (--dsn).
    """
