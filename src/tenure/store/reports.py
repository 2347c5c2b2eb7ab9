"""The statements that look back: at a job's whole life, at rates and latencies, at the health of the database, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tenure.store.query import Query, array_literal


def find(job_id: str, *, incidents: int, lines: int, children: int) -> Query:
    return Query("reports/find_report", {"id": job_id, "incidents": incidents, "lines": lines, "children": children})


def minutes(seconds: float, queue: str | None, kind: str | None) -> Query:
    """Gives (minute, queue, kind, what, jobs)."""
    return Query("reports/count_minutes", {"seconds": seconds, "queue": queue, "kind": kind})


def latencies(seconds: float, queue: str | None, kind: str | None) -> Query:
    """Gives (queue, kind, measure, bucket, jobs)."""
    return Query("reports/count_latencies", {"seconds": seconds, "queue": queue, "kind": kind})


def find_migrations() -> Query:
    """Gives (version, phase)."""
    return Query("reports/find_migrations")


def find_old_workers(version: int) -> Query:
    """Gives (name, version of the code)."""
    return Query("reports/find_old_workers", {"version": version})


def find_blockers(pid: int) -> Query:
    """Gives the fields of `Blocker`."""
    return Query("reports/find_blockers", {"pid": pid})


def probe_history() -> Query:
    """Gives (days ahead, JSON of days without a partition, jobs that no partition took)."""
    return Query("reports/probe_history")


def probe_indexes() -> Query:
    """Gives (index, table, valid, unique, definition)."""
    return Query("reports/probe_indexes")


def probe_tables() -> Query:
    """Gives (name, live rows, dead rows, autovacuum, unlogged, JSON of publications)."""
    return Query("reports/probe_tables")


def probe_sessions(old: float) -> Query:
    """Gives (connections, how many there may be, hidden sessions, account, JSON of transactions)."""
    return Query("reports/probe_sessions", {"old": old})


def probe_server() -> Query:
    """Gives (clock, autovacuum, use of the notification queue, age of transaction ids, age of multixacts)."""
    return Query("reports/probe_server")


def probe_slots() -> Query:
    """Gives the fields of `Slot`."""
    return Query("reports/probe_slots")


def probe_settings(names: Iterable[str]) -> Query:
    """Gives the fields of `Setting`."""
    return Query("reports/probe_settings", {"names": array_literal(list(names))})


def find_paused() -> Query:
    """Gives the fields of `PausedQueue`."""
    return Query("reports/find_paused")


def find_stranded(seconds: float) -> Query:
    """Gives the fields of `Stranded`."""
    return Query("reports/find_stranded", {"seconds": seconds})


def count_dead_letters() -> Query:
    """Gives (of the last hour, in all, kind of most)."""
    return Query("reports/count_dead_letters")


def count_held_by_unknown() -> Query:
    return Query("reports/count_held_by_unknown")


def declare_retentions(kinds: Mapping[str, float | None]) -> Query:
    """In seconds; None for as long as all others."""
    given = json.dumps([{"kind": kind, "keep": keep} for kind, keep in kinds.items()])
    return Query("history/declare_retentions", {"kinds": given})
