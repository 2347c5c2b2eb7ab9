"""The statements that look back: at a job's whole life, at counts and latencies, at the health of the database, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from tenure.store.job_records import ChildRecord, IncidentRecord, LogLineRecord, ProgressRecord, StepRecord
from tenure.store.jobs import JobRow
from tenure.store.json_columns import Json
from tenure.store.obstacles import Blocked, LimitGroup, WaitingStep
from tenure.store.query import BOOLEAN, INTEGER, OPTIONAL_TEXT, Query, array_literal

# One job


class ReportRow(NamedTuple):
    """All that is known of a job."""

    job: JobRow
    at: datetime
    worker: str | None
    """The name of the worker that holds it."""
    progress: Json[ProgressRecord | None]
    incidents: Json[list[IncidentRecord]]
    log: Json[list[LogLineRecord]]
    children: Json[list[ChildRecord]]
    steps: Json[list[StepRecord]]


class ExplainRow(NamedTuple):
    """What may keep a job from running."""

    job: JobRow
    now: datetime
    lease_expires_at: datetime | None
    host: str | None
    """Of the worker that holds it."""
    pid: int | None
    worker_name: str | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    stager: bool
    """A process promotes jobs that are due."""
    workers: int
    """How many are alive; of those, how many serve the queue; of those, know the kind; of those, have the capability."""
    for_queue: int
    for_kind: int
    for_capability: int
    draining: int
    """Of the last, how many claim no more jobs."""
    slots: int
    """How many jobs the last may run at a time, and how many they hold."""
    held: Decimal
    ahead: int
    """Jobs before it that the same workers could run."""
    limit_groups: Json[list[LimitGroup]]
    """Of the limits that the job is under."""
    resolver: bool
    """A process unblocks jobs."""
    blocked: Json[Blocked | None]
    """What a blocked job waits for."""
    waits: Json[list[WaitingStep]]
    """What a workflow waits for."""


def find(job_id: str, *, incidents: int, lines: int, children: int, steps: int) -> Query[ReportRow]:
    values = {"id": job_id, "incidents": incidents, "lines": lines, "children": children, "steps": steps}
    return Query("reports/find_report", ReportRow, values)


NAMED_BLOCKERS = 5
"""Chains that an explanation names one by one."""


def explain(job_id: UUID) -> Query[ExplainRow]:
    return Query("reports/explain_job", ExplainRow, {"id": str(job_id), "blockers": NAMED_BLOCKERS})


# Counts


class LiveCountRow(NamedTuple):
    queue: str
    kind: str
    state: str
    jobs: int
    oldest_at: datetime


class FinishedCountRow(NamedTuple):
    queue: str
    kind: str
    what: str
    jobs: int
    waited: float
    """Seconds from enqueue to start, of all of them together."""
    ran: float


class MinuteRow(NamedTuple):
    minute: datetime
    queue: str
    kind: str
    what: str
    jobs: int


class LatencyRow(NamedTuple):
    queue: str
    kind: str
    measure: str
    bucket: int
    jobs: int


def count_live() -> Query[LiveCountRow]:
    return Query("reports/count_live", LiveCountRow)


def count_finished() -> Query[FinishedCountRow]:
    return Query("reports/count_finished", FinishedCountRow)


def minutes(seconds: float, queue: str | None, kind: str | None) -> Query[MinuteRow]:
    return Query("reports/count_minutes", MinuteRow, {"seconds": seconds, "queue": queue, "kind": kind})


def latencies(seconds: float, queue: str | None, kind: str | None) -> Query[LatencyRow]:
    return Query("reports/count_latencies", LatencyRow, {"seconds": seconds, "queue": queue, "kind": kind})


# The database


class MigrationRow(NamedTuple):
    version: int
    phase: str


class OldWorkerRow(NamedTuple):
    name: str
    version: str
    """Of its code."""


class LockedTablesRow(NamedTuple):
    """Tables that one session has locked or waits to lock, and the age of its transaction in seconds."""

    tables: str
    pid: int
    application: str
    user: str | None
    state: str | None
    transaction_age: float | None
    behind: str | None
    """The process ids of the sessions that it waits for. None: it has the lock."""


class LockHolderRow(NamedTuple):
    """A session that holds a lock; ages in seconds."""

    pid: int
    application: str
    user: str | None
    state: str | None
    transaction_age: float | None
    query_age: float | None


class HistoryRow(NamedTuple):
    days_ahead: int
    holes: str | None
    """JSON: days without a partition."""
    unplaced: int
    """Jobs that no partition took."""


class IndexRow(NamedTuple):
    name: str
    table: str
    valid: bool
    unique: bool
    definition: str


class TableRow(NamedTuple):
    name: str
    live: int
    dead: int
    autovacuum: bool
    unlogged: bool
    publications: str | None
    """JSON."""


class SessionsRow(NamedTuple):
    connections: int
    max_connections: int
    hidden: int
    """Sessions whose state this account may not see."""
    account: str
    transactions: str | None
    """JSON: the old ones."""


class ServerRow(NamedTuple):
    clock: float
    autovacuum: bool
    notify_usage: float
    """Of the notification queue: 0 to 1."""
    xid_age: int
    multixact_age: int


class SlotRow(NamedTuple):
    name: str
    wal: int
    holds_rows: bool


class SettingRow(NamedTuple):
    name: str
    value: str
    where: str
    reset: str


class PausedRow(NamedTuple):
    name: str
    age: float
    by: str | None
    reason: str | None
    waiting: int
    capped: bool


class StrandedRow(NamedTuple):
    queue: str
    kind: str
    capability: str | None
    jobs: int
    age: float
    for_queue: int
    for_kind: int
    capped: bool


class DeadLettersRow(NamedTuple):
    last_hour: int
    total: int
    kind: str | None
    """The most frequent of the last hour."""


class HeldWorkflowsRow(NamedTuple):
    """Workflows of a kind that a person must decide about."""

    kind: str
    jobs: int
    example: str
    """The id of one of them."""
    reason: str
    """Why that one is held."""


def probe_writable() -> Query[bool]:
    return Query("reports/probe_writable", BOOLEAN)


class ServerIdentityRow(NamedTuple):
    database: str
    version: str
    at: datetime


def identify_server() -> Query[ServerIdentityRow]:
    return Query("reports/identify_server", ServerIdentityRow)


def identify_database() -> Query[str | None]:
    return Query("reports/identify_database", OPTIONAL_TEXT)


def find_migrations() -> Query[MigrationRow]:
    return Query("reports/find_migrations", MigrationRow)


def find_old_workers(version: int) -> Query[OldWorkerRow]:
    return Query("reports/find_old_workers", OldWorkerRow, {"version": version})


def find_lock_holders(pid: int) -> Query[LockHolderRow]:
    return Query("reports/find_lock_holders", LockHolderRow, {"pid": pid})


def find_locked_tables() -> Query[LockedTablesRow]:
    return Query("reports/find_locked_tables", LockedTablesRow)


def probe_history() -> Query[HistoryRow]:
    return Query("reports/probe_history", HistoryRow)


def probe_indexes() -> Query[IndexRow]:
    return Query("reports/probe_indexes", IndexRow)


def probe_tables() -> Query[TableRow]:
    return Query("reports/probe_tables", TableRow)


def probe_sessions(old: float) -> Query[SessionsRow]:
    return Query("reports/probe_sessions", SessionsRow, {"old": old})


def probe_server() -> Query[ServerRow]:
    return Query("reports/probe_server", ServerRow)


def probe_slots() -> Query[SlotRow]:
    return Query("reports/probe_slots", SlotRow)


def probe_settings(names: Iterable[str]) -> Query[SettingRow]:
    return Query("reports/probe_settings", SettingRow, {"names": array_literal(list(names))})


def find_paused() -> Query[PausedRow]:
    return Query("reports/find_paused", PausedRow)


def find_stranded(seconds: float) -> Query[StrandedRow]:
    return Query("reports/find_stranded", StrandedRow, {"seconds": seconds})


def count_dead_letters() -> Query[DeadLettersRow]:
    return Query("reports/count_dead_letters", DeadLettersRow)


def count_held_workflows() -> Query[HeldWorkflowsRow]:
    return Query("reports/count_held_workflows", HeldWorkflowsRow)


def count_held_by_unknown() -> Query[int]:
    return Query("reports/count_held_by_unknown", INTEGER)
