"""Health: other sessions of the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.model.findings import Finding, span

OLD_TRANSACTION = 300.0
MOST_CONNECTIONS = 0.9
MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that has been open for a long time. A prepared transaction has no pid."""

    pid: int | None
    application: str
    user: str | None
    state: str | None
    age: float
    snapshot: bool
    """It keeps dead rows from being removed."""

    def __str__(self) -> str:
        who = self.application if self.pid is None else f"session {self.pid} ({self.application}, user {self.user}, {self.state})"
        return f"{who} for {span(self.age)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    connections: int = 0
    max_connections: int = 100
    hidden: int = 0
    """Sessions that this account cannot see."""
    account: str = ""
    transactions: Sequence[Transaction] = ()
    """The old ones, the oldest first."""

    def findings(self) -> Iterator[Finding]:
        if snapshots := [one for one in self.transactions if one.snapshot]:
            yield Finding(
                "old_snapshot",
                f"a transaction has been open for a long time, so vacuum cannot remove rows that died since: {_shown(snapshots)}",
                "end it (pg_terminate_backend), or set idle_in_transaction_session_timeout",
            )
        if others := [one for one in self.transactions if not one.snapshot]:
            yield Finding(
                "long_transaction",
                f"a transaction has been open for a long time and may hold locks: {_shown(others)}",
                "end it (pg_terminate_backend), or set idle_in_transaction_session_timeout",
            )
        if self.connections > MOST_CONNECTIONS * self.max_connections:
            yield Finding(
                "connections",
                f"{self.connections} of {self.max_connections} connections are in use",
                "raise max_connections, or put a pooler in front",
            )
        if self.hidden:
            yield Finding(
                "limited",
                f"this account cannot see {self.hidden} other sessions, and may miss long transactions",
                f"let an administrator run: grant pg_read_all_stats to {self.account}",
                severity="note",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTables:
    """Tables that another session has locked against all reads, or waits to lock so: reads wait behind it, too."""

    tables: str
    pid: int
    application: str
    user: str | None
    state: str | None
    transaction_age: float | None
    behind: str | None = None
    """The process ids of the sessions that it waits for. None: it has the lock."""

    @property
    def finding(self) -> Finding:
        doing = self.state or "state unknown"
        age = "" if self.transaction_age is None else f", in a transaction for {span(self.transaction_age)}"
        does, others = "has locked", ""
        if self.behind is not None:
            does, others = "waits to lock", f", or what it waits for (session {self.behind or 'unknown'})"
        return Finding(
            "locked",
            f"session {self.pid} ({self.application}, user {self.user}, {doing}{age}) {does} {self.tables} against all reads",
            f"let it finish, or end it: select pg_terminate_backend({self.pid}){others}",
            about=str(self.pid),
        )


def _shown(transactions: list[Transaction]) -> str:
    rest = len(transactions) - MOST_SHOWN
    return "; ".join(map(str, transactions[:MOST_SHOWN])) + (f"; and {rest} more" if rest > 0 else "")
