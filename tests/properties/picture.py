"""The whole state at one moment: as PostgreSQL has it, and as the model has it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from tests.properties.model.rows import Books

Row = tuple[Any, ...]

_SHARED = (
    *("id", "state", "kind", "queue", "priority", "capability", "max_attempts"),
    *("attempt", "crashes", "fence", "claim_id", "worker_id"),
    *("enqueued_at", "run_at", "started_at", "error", "input", "key", "parent_id"),
)

TABLES = {
    "jobs": (*_SHARED, "position", "lease_until"),
    "history": (*_SHARED, "finished_at", "output"),
    "claims": ("id", "worker_id", "at", "job_ids"),
    "keys": ("kind", "key", "job_id", "scope", "taken_at", "expires_at", "digest"),
    "workers": ("id", "supervisor_id", "heartbeat_at", "expires_at", "died_at", "died_how"),
    "leases": ("name", "holder", "term", "acquired_at", "heartbeat_at", "expires_at"),
    "queues": ("name", "returns", "paused_at"),
    "progress": ("job_id", "fence", "percent"),
}
COLUMN = {column: place for place, column in enumerate(_SHARED)}

_getters = {table: attrgetter(*columns) for table, columns in TABLES.items()}


class Picture(NamedTuple):
    """Rows by their first column (keys: by the first two)."""

    jobs: dict[Any, Row]
    history: dict[Any, Row]
    claims: dict[Any, Row]
    keys: dict[Any, Row]
    workers: dict[Any, Row]
    leases: dict[Any, Row]
    queues: dict[Any, Row]
    progress: dict[Any, Row]


# Of a running job, these are stored in its claim. A claim that does not name the job does not count.
_SOURCES = {
    "jobs": """(select j.*, h.worker_id, coalesce(h.started_at, j.started_at) as began_at
                  from tenure.jobs j left join tenure.held_jobs h on h.id = j.id)"""
}
_ELSEWHERE = {("jobs", "started_at"): "began_at"}


def _column(table: str, name: str) -> str:
    name = _ELSEWHERE.get((table, name), name)
    if name == "at" or name.endswith(("_at", "_until")):
        return f"extract(epoch from t.{name})::float8"
    return f"t.{name}::text" if name in ("input", "output") else f"t.{name}"


def _rows(table: str, columns: Iterable[str]) -> str:
    values = ", ".join(_column(table, name) for name in columns)
    return f"(select json_agg(json_build_array({values})) from {_SOURCES.get(table, f'tenure.{table}')} t)"


STATEMENT = f"select json_build_array({', '.join(_rows(table, columns) for table, columns in TABLES.items())})::text"


def from_text(text: str) -> Picture:
    tables = dict(zip(TABLES, json.loads(text), strict=True))
    return Picture(*(_by_id(table, [tuple(map(_plain, row)) for row in rows or ()]) for table, rows in tables.items()))


def _plain(value: Any) -> Any:
    """The jobs of a claim have no order."""
    return tuple(sorted(value)) if isinstance(value, list) else value


def _by_id(table: str, rows: list[Row]) -> dict[Any, Row]:
    found = {(row[:2] if table == "keys" else row[0]): row for row in rows}
    assert len(found) == len(rows), f"a row of {table} stands there twice"
    return found


def from_books(books: Books) -> Picture:
    kept: tuple[Mapping[Any, Any], ...] = (
        books.live,
        books.finished,
        books.claims,
        books.keys,
        books.workers,
        books.leases,
        books.queues,
        books.progress,
    )
    return Picture(*({key: _getters[table](row) for key, row in rows.items()} for table, rows in zip(TABLES, kept, strict=True)))


def differences(stands: Picture, expected: Picture) -> str:
    """What is not as the model says, a line for each column."""
    lines = []
    for table, columns in TABLES.items():
        here, there = getattr(stands, table), getattr(expected, table)
        for key in sorted(here.keys() | there.keys()):
            if key not in there or key not in here:
                lines.append(f"{table} {key}: {'should not be there' if key in here else 'is missing'}")
                continue
            for column, is_, should_be in zip(columns, here[key], there[key], strict=True):
                if is_ != should_be:
                    lines.append(f"{table} {key}: {column} is {is_!r}, should be {should_be!r}")
    return "\n".join(lines)
