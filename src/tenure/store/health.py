"""One look at everything that may be wrong: each check is a statement of its own, and one that fails spoils no other."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from typing import Any

from tenure.model.health import Fact, Probe
from tenure.model.health_server import WATCHED, Clock, Limits, Setting, Slot
from tenure.model.health_sessions import OLD_TRANSACTION, Sessions, Transaction
from tenure.model.health_tables import History, Indexes, Schema, Table
from tenure.model.health_work import DeadLetters, HeldByUnknown, PausedQueue, Stranded
from tenure.store import faults, reports
from tenure.store.expected import expected_indexes
from tenure.store.migration_files import migrations, newest_version
from tenure.store.query import Query

Fetch = Callable[[Query], Awaitable[list[tuple[Any, ...]]]]
Rows = list[tuple[Any, ...]]

STRANDED_AFTER = 30.0
"""Seconds that a job waits before it counts as one that no worker can run: at a start workers come one by one."""


async def probe(fetch: Fetch) -> Probe:
    applied = {(version, phase) for version, phase in await fetch(reports.find_migrations())}
    schema = await _schema(fetch, applied)
    if schema.is_old:
        return Probe(facts=[schema])
    facts: list[Fact] = [schema]
    unseen: list[str] = []
    for name, query, read in _checks(applied):
        try:
            facts += read(await fetch(query))
        except faults.Refused as error:
            unseen.append(f"{name} ({faults.words(error.__cause__ or error)})")
    began = time.time()
    try:
        facts += _server(await fetch(reports.probe_server()), began, time.time())
    except faults.Refused as error:
        unseen.append(f"limits of the server ({faults.words(error.__cause__ or error)})")
    return Probe(facts=facts, unseen=unseen)


def _checks(applied: set[tuple[int, str]]) -> Iterator[tuple[str, Query, Callable[[Rows], list[Fact]]]]:
    yield "partitions", reports.probe_history(), _history
    yield "indexes", reports.probe_indexes(), lambda rows: _indexes(rows, applied)
    yield "tables", reports.probe_tables(), lambda rows: [_table(row) for row in rows]
    yield "sessions", reports.probe_sessions(OLD_TRANSACTION), _sessions
    yield "replication slots", reports.probe_slots(), lambda rows: [Slot(*row) for row in rows]
    yield "settings", reports.probe_settings(WATCHED), lambda rows: [Setting(*row) for row in rows]
    yield "paused queues", reports.find_paused(), lambda rows: [PausedQueue(*row) for row in rows]
    yield "jobs without a worker", reports.find_stranded(STRANDED_AFTER), lambda rows: [Stranded(*row) for row in rows]
    yield "dead letters", reports.count_dead_letters(), _dead_letters
    yield "jobs of unknown workers", reports.count_held_by_unknown(), lambda rows: [HeldByUnknown(*rows[0])]


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


def _history(rows: Rows) -> list[Fact]:
    [(days_ahead, holes, unplaced)] = rows
    return [
        History(days_ahead=days_ahead, holes=[date.fromisoformat(day) for day in json.loads(holes or "[]")], unplaced=unplaced)
    ]


def _indexes(rows: Rows, applied: set[tuple[int, str]]) -> list[Fact]:
    there = {name for name, *_ in rows}
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, _, _, _, definition in rows:
        alike[definition].append(name)
    expected = expected_indexes(applied)
    return [
        Indexes(
            missing=[f"{name} on {table}" for name, table in sorted(expected.items()) if name not in there],
            invalid=[name for name, _, valid, _, _ in rows if not valid],
            duplicates=[tuple(names) for names in alike.values() if len(names) > 1],
        )
    ]


def _table(row: tuple[Any, ...]) -> Table:
    name, live, dead, autovacuum, unlogged, publications = row
    published = json.loads(publications or "[]")
    return Table(name=name, live=live, dead=dead, autovacuum=autovacuum, unlogged=unlogged, publications=published)


def _sessions(rows: Rows) -> list[Fact]:
    [(connections, most, hidden, account, transactions)] = rows
    old = [Transaction(**told) for told in json.loads(transactions or "[]")]
    return [Sessions(connections=connections, max_connections=most, hidden=hidden, account=account, transactions=old)]


def _dead_letters(rows: Rows) -> list[Fact]:
    [(last_hour, total, kind)] = rows
    return [DeadLetters(last_hour=last_hour, total=total, kind=kind)]


def _server(rows: Rows, began: float, ended: float) -> list[Fact]:
    [(clock, autovacuum, notify_usage, xid_age, multixact_age)] = rows
    # The server looked at its clock at some moment in between: only what is beyond that is a difference.
    difference = clock - ended if clock > ended else min(0.0, clock - began)
    limits = Limits(autovacuum=autovacuum, notify_usage=notify_usage, xid_age=xid_age, multixact_age=multixact_age)
    return [limits, Clock(difference=difference)]
