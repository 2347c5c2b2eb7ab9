"""What tells that a queue is in trouble, or will be: facts in, findings out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure.model.durations import format_duration

OLD_SNAPSHOT = 300.0
MANY_DEAD = 100_000
DAYS_AHEAD = 2
MOST_CONNECTIONS = 0.9


@dataclass(frozen=True, slots=True)
class Probe:
    """One look at PostgreSQL; see the statement probe_health."""

    snapshot_age: float
    snapshot_of: str | None
    dead_rows: int
    live_rows: int
    vacuumed_at: datetime | None
    days_ahead: int
    unplaced: int
    connections: int
    max_connections: int
    deaf: bool = False
    """Words sent by NOTIFY do not arrive."""

    @property
    def findings(self) -> dict[str, str]:
        """What should be seen to, each with the way out."""
        found: dict[str, str] = {}
        if self.snapshot_age > OLD_SNAPSHOT:
            found["old_snapshot"] = (
                f"a transaction has been open for {_span(self.snapshot_age)} ({self.snapshot_of}): "
                "vacuum cannot remove any row that died since; end it, or set idle_in_transaction_session_timeout"
            )
        if self.dead_rows > MANY_DEAD and self.dead_rows > 5 * self.live_rows:
            found["dead_rows"] = (
                f"{self.dead_rows:,} dead rows in tenure.jobs against {self.live_rows:,} live ones: autovacuum does not keep up; "
                "look for old snapshots, then run `vacuum tenure.jobs`"
            )
        if self.days_ahead < DAYS_AHEAD:
            found["partitions"] = (
                f"history has partitions for {max(self.days_ahead, 0)} days ahead: the cleaner should make 7; look at "
                "`tenure leaders`, and whether the database user may create tables"
            )
        if self.unplaced:
            found["unplaced"] = (
                "finished jobs stand in tenure.history_default, because their day had no partition; see `tenure leaders`"
            )
        if self.connections > MOST_CONNECTIONS * self.max_connections:
            found["connections"] = (
                f"{self.connections} of {self.max_connections} connections are in use: raise max_connections, "
                "or put a pooler in front"
            )
        if self.deaf:
            found["deaf"] = (
                "NOTIFY does not arrive, probably because of a pooler in transaction mode: new jobs wait for the next poll; "
                "give listen_dsn a way to PostgreSQL itself"
            )
        return found


def _span(seconds: float) -> str:
    return format_duration(timedelta(seconds=round(seconds)))
