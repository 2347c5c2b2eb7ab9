"""The store's own statements on one connection, under the injected clock, with a count of the steps made."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import psycopg

from tenure.store.query import Query
from tenure.store.statements import statement
from tests.properties import clock, picture
from tests.properties.picture import Picture

# As the product's hot connections: a statement is planned once, and uses an index under any statistics.
SETTINGS = {
    "search_path": clock.PATH.replace(" ", ""),
    "TimeZone": "UTC",
    "statement_timeout": "20s",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}

TABLES = (
    *picture.TABLES,
    "logs",
    "incidents",
    "watches",
    "tallies",
    "counters",
    "minutes",
    "latencies",
    "retentions",
    "schedules",
    "ticks",
)
# Deleted, not truncated: that would cost every prepared statement its plan.
EMPTY = "".join(f"delete from tenure.{table};" for table in TABLES) + "select setval('tenure.job_position', 1, false)"

SWEEP_EVERY = 10
"""Lives after which the dead rows are taken out of the tables."""

REMEMBERED = 12
"""Statements that a failure tells."""

WAITS = b"select cardinality(pg_blocking_pids(%s)) > 0"

Rows = list[tuple[Any, ...]]


class StoreDatabase:
    def __init__(self, dsn: str) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        self.connection, self.other = (
            psycopg.connect(dsn, autocommit=True, options=options, prepare_threshold=0) for _ in range(2)
        )
        self._cursor = self.connection.cursor()
        self._thread = ThreadPoolExecutor(1)
        clock.install(self.connection)
        # Where a page of jobs is cut depends on where they lie, which must be the same every time.
        self.connection.execute("alter table tenure.jobs set (autovacuum_enabled = false)")
        self.trail: deque[object] = deque(maxlen=REMEMBERED)
        self.steps = 0
        self.lives = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self.connection.close()
        self.other.close()

    def begin(self, now: float) -> None:
        """An empty store, for the next life."""
        self.connection.execute(EMPTY.encode(), prepare=False)
        if self.lives % SWEEP_EVERY == 0:
            self.connection.execute("vacuum (truncate false) " + ", ".join(f"tenure.{table}" for table in TABLES))
        self.trail.clear()
        self.lives += 1
        self.set_clock(now)

    def set_clock(self, now: float) -> None:
        self.now = now
        clock.set_to(self.connection, now)
        self.trail.append(f"the time is {now - clock.BEGIN:g}")

    def run(self, query: Query) -> Rows:
        self.trail.append(query)
        return _execute(self._cursor, query)

    def run_both(self, first: Query, second: Query, *, commit: bool) -> tuple[Rows, Rows]:
        """The first in a transaction of its own, which ends when the second waits for it, or is done."""
        clock.set_to(self.other, self.now)
        self.trail += ["begin", first]
        with self.other.transaction(force_rollback=not commit):
            told = _execute(self.other.cursor(), first)
            late = self._thread.submit(self.run, second)
            pid = self.connection.info.backend_pid
            while not late.done() and not self.other.execute(WAITS, [pid]).fetchone()[0]:
                pass
        self.trail.append("commit" if commit else "rollback")
        return told, late.result()

    def sql(self, statement: str) -> Rows:
        return self.connection.execute(statement.encode()).fetchall()

    def picture(self) -> Picture:
        [(told,)] = self._cursor.execute(picture.STATEMENT.encode()).fetchall()
        return picture.from_text(told)


def _execute(cursor: psycopg.Cursor, query: Query) -> Rows:
    cursor.execute(statement(query.name, "tenure").encode(), query.values)
    return cursor.fetchall() if cursor.description else []
