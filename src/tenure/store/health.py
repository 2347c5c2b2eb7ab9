"""One look at everything that may be wrong: each check is a statement of its own, and one that fails spoils no other."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from typing import TypeVar

from tenure.model.health import Fact, Probe
from tenure.model.health_server import WATCHED, Clock, Limits, ServerSetting, Slot
from tenure.model.health_sessions import OLD_TRANSACTION, Sessions, Transaction
from tenure.model.health_tables import History, Indexes, Schema, Table
from tenure.model.health_work import DeadLetters, HeldByUnknown, HeldWorkflows, PausedQueue, Stranded
from tenure.store import faults, reports
from tenure.store.expected import expected_indexes
from tenure.store.migration_files import migrations, newest_version
from tenure.store.query import Fetch, Query
from tenure.store.reports import DeadLettersRow, HistoryRow, IndexRow, ServerRow, SessionsRow, TableRow

Row = TypeVar("Row")
Check = tuple[str, Callable[[], Awaitable[list[Fact]]]]

STRANDED_AFTER = 30.0
"""Seconds that a job waits before it counts as one that no worker can run: at a start workers come one by one."""


async def probe(fetch: Fetch) -> Probe:
    applied = {(row.version, row.phase) for row in await fetch(reports.find_migrations())}
    schema = await _schema(fetch, applied)
    if schema.is_old:
        return Probe(facts=[schema])
    facts: list[Fact] = [schema]
    unseen: list[str] = []
    for name, check in _checks(fetch, applied):
        try:
            facts += await check()
        except faults.Refused as error:
            unseen.append(f"{name} ({faults.words(error.__cause__ or error)})")
    began = time.time()
    try:
        facts += _server(await fetch(reports.probe_server()), began, time.time())
    except faults.Refused as error:
        unseen.append(f"limits of the server ({faults.words(error.__cause__ or error)})")
    return Probe(facts=facts, unseen=unseen)


def _checks(fetch: Fetch, applied: set[tuple[int, str]]) -> Iterator[Check]:
    def check(query: Query[Row], read: Callable[[list[Row]], list[Fact]]) -> Callable[[], Awaitable[list[Fact]]]:
        async def run() -> list[Fact]:
            return read(await fetch(query))

        return run

    yield "partitions", check(reports.probe_history(), _history)
    yield "indexes", check(reports.probe_indexes(), lambda rows: _indexes(rows, applied))
    yield "tables", check(reports.probe_tables(), lambda rows: [_table(row) for row in rows])
    yield "sessions", check(reports.probe_sessions(OLD_TRANSACTION), _sessions)
    yield "replication slots", check(reports.probe_slots(), lambda rows: [Slot(*row) for row in rows])
    yield "settings", check(reports.probe_settings(WATCHED), lambda rows: [ServerSetting(*row) for row in rows])
    yield "paused queues", check(reports.find_paused(), lambda rows: [PausedQueue(*row) for row in rows])
    yield "jobs without a worker", check(reports.find_stranded(STRANDED_AFTER), lambda rows: [Stranded(*row) for row in rows])
    yield "dead letters", check(reports.count_dead_letters(), _dead_letters)
    yield "held workflows", check(reports.count_held_workflows(), lambda rows: [HeldWorkflows(*row) for row in rows])
    yield "jobs of unknown workers", check(reports.count_held_by_unknown(), lambda counts: [HeldByUnknown(counts[0])])


async def _schema(fetch: Fetch, applied: set[tuple[int, str]]) -> Schema:
    missing = [m for m in migrations() if m.key not in applied]
    post = [m for m in missing if m.phase == "post"]
    old = await fetch(reports.find_old_workers(post[-1].version)) if post else []
    return Schema(
        version=max((version for version, phase in applied if phase == "pre"), default=None),
        needed=newest_version(),
        pending_pre=[m.label for m in missing if m.phase == "pre"],
        pending_post=[m.label for m in post],
        old_workers=len(old),
    )


def _history(rows: list[HistoryRow]) -> list[Fact]:
    [row] = rows
    holes = [date.fromisoformat(day) for day in json.loads(row.holes or "[]")]
    return [History(days_ahead=row.days_ahead, holes=holes, unplaced=row.unplaced)]


def _indexes(rows: list[IndexRow], applied: set[tuple[int, str]]) -> list[Fact]:
    there = {row.name for row in rows}
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        alike[row.definition].append(row.name)
    expected = expected_indexes(applied)
    return [
        Indexes(
            missing=[f"{name} on {table}" for name, table in sorted(expected.items()) if name not in there],
            invalid=[row.name for row in rows if not row.valid],
            duplicates=[tuple(names) for names in alike.values() if len(names) > 1],
        )
    ]


def _table(row: TableRow) -> Table:
    return Table(**row._asdict() | {"publications": json.loads(row.publications or "[]")})


def _sessions(rows: list[SessionsRow]) -> list[Fact]:
    [row] = rows
    return [Sessions(**row._asdict() | {"transactions": [Transaction(**one) for one in json.loads(row.transactions or "[]")]})]


def _dead_letters(rows: list[DeadLettersRow]) -> list[Fact]:
    [row] = rows
    return [DeadLetters(**row._asdict())]


def _server(rows: list[ServerRow], began: float, ended: float) -> list[Fact]:
    [row] = rows
    # The server looked at its clock at some moment in between: only what is beyond that is a difference.
    difference = row.clock - ended if row.clock > ended else min(0.0, row.clock - began)
    limits = Limits(
        autovacuum=row.autovacuum, notify_usage=row.notify_usage, xid_age=row.xid_age, multixact_age=row.multixact_age
    )
    return [limits, Clock(difference=difference)]
