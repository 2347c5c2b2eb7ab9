"""`tenure chaos`: a table of its own."""

from __future__ import annotations

import click

from tenure.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("tenure.cli.campaign:run", "Strike real workers and a real PostgreSQL, and judge what became of the jobs."),
    "failover": ("tenure.cli.campaign:failover", "Kill a primary whose standby lags, and judge what became of the jobs."),
    "check": ("tenure.cli.campaign:check", "Judge a recorded ledger."),
    "plan": ("tenure.cli.campaign:plan", "Print which faults a seed gives, and when."),
    "faults": ("tenure.cli.campaign:faults", "The kinds of faults, and which can come here."),
    "drills": ("tenure.cli.drills:drills", "Measure how fast work comes back: restarts, kills, shutdowns."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def chaos() -> None:
    """Prove it: kill, freeze, cut and crash everything, and check that no promise was broken.

    Uses an embedded PostgreSQL of its own, or a database that nobody needs (--dsn).
    """
