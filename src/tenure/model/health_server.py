"""Health: limits and settings of the server, and its replication slots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.model.findings import Finding, span

OLDEST_XID = 1_000_000_000
FULLEST_QUEUE = 0.25
MOST_WAL = 1 << 30
CLOCK_DIFFERENCE = 5.0

EXPECTED: dict[str, tuple[str, ...]] = {
    "default_transaction_isolation": ("read committed",),
    "default_transaction_read_only": ("off",),
    "standard_conforming_strings": ("on",),
    "session_replication_role": ("origin", "local"),
    "enable_indexscan": ("on",),
}
"""Other values change the results or the speed of statements."""

DURABLE: dict[str, tuple[str, ...]] = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}
"""With other values, a crash of the server may lose accepted jobs."""

SHORTEST: dict[str, float] = {
    "statement_timeout": 30.0,
    "lock_timeout": 1.0,
    "idle_in_transaction_session_timeout": 10.0,
    "idle_session_timeout": 120.0,
    "transaction_timeout": 30.0,
}
"""Seconds; shorter timeouts, other than 0, end statements that work as they should."""

WATCHED = (*EXPECTED, *DURABLE, *SHORTEST)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class ServerSetting:
    name: str
    value: str
    where: str
    """For which role or database, or the whole server."""
    reset: str
    """The statement that resets it."""

    def findings(self) -> Iterator[Finding]:
        expected = EXPECTED.get(self.name)
        if self.name in DURABLE and self.value not in DURABLE[self.name]:
            text = f"{self.name} is {self.value} for {self.where}: a crash of the server may lose accepted jobs"
            yield Finding("not_durable", text, self.reset)
        elif expected and self.value not in expected:
            text = f"{self.name} is {self.value} for {self.where}: statements do not behave as Tenure requires"
            yield Finding("hostile_setting", text, self.reset)
        elif self.name in SHORTEST and 0 < (seconds := _seconds(self.value)) < SHORTEST[self.name]:
            text = f"{self.name} is {self.value} for {self.where}: under {span(seconds)}, it ends statements that would succeed"
            yield Finding("hostile_setting", text, self.reset)


def _seconds(value: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d|)\s*", value)
    return float(found[1]) * _SECONDS[found[2]] if found else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    autovacuum: bool = True
    """Of the whole server, with the statistics that it needs (track_counts)."""
    notify_usage: float = 0.0
    """Usage of the notification queue, from 0 to 1."""
    xid_age: int = 0
    """Transactions since the oldest that is not frozen."""
    multixact_age: int = 0

    def findings(self) -> Iterator[Finding]:
        if not self.autovacuum:
            yield Finding(
                "autovacuum_off",
                "autovacuum is off for the whole server, so tables grow and become slow",
                "set autovacuum = on and track_counts = on, and reload the server",
            )
        if (oldest := max(self.xid_age, self.multixact_age)) > OLDEST_XID:
            yield Finding(
                "wraparound",
                f"{oldest:,} transaction ids are not frozen: PostgreSQL stops writing at about 2 billion",
                "look for old transactions, prepared transactions and replication slots, then run: vacuum freeze",
            )
        if self.notify_usage > FULLEST_QUEUE:
            yield Finding(
                "notify_queue",
                f"the notification queue is {self.notify_usage:.0%} full: when it is full, commits that notify fail",
                "end the session that listens inside an open transaction: the oldest in pg_stat_activity",
            )


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot that no replica uses."""

    name: str
    wal: int
    """Bytes of WAL that are kept for it."""
    holds_rows: bool
    """It keeps dead rows from being removed."""

    def findings(self) -> Iterator[Finding]:
        if self.wal > MOST_WAL or self.holds_rows:
            kept = f"{self.wal / (1 << 20):,.0f} MB of WAL" + (" and dead rows" if self.holds_rows else "")
            yield Finding(
                "inactive_slot",
                f"replication slot {self.name} is not in use and keeps {kept}: the disk may run full",
                f"reconnect its replica, or run: select pg_drop_replication_slot('{self.name}')",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    difference: float = 0.0
    """Seconds by which the server's clock is ahead of this machine's, for certain."""

    def findings(self) -> Iterator[Finding]:
        if abs(self.difference) > CLOCK_DIFFERENCE:
            order = "ahead of" if self.difference > 0 else "behind"
            yield Finding(
                "clock",
                f"the server's clock is {span(abs(self.difference))} {order} this machine's: ids and log lines are out of order",
                "synchronize both by NTP",
            )
