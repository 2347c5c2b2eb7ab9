"""One synchronous connection of our own, that reconnects by itself: a `Link` for code without an event loop.

Every call has a deadline, also while the server is silent. A call that fails leaves no connection whose state is unknown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg import Connection, Cursor

from tenure.model.errors import SchemaMismatch
from tenure.store import faults
from tenure.store.columns import column_names, has_rows
from tenure.store.connecting import KEEPALIVE, connect_sync, server_of
from tenure.store.prepared import PreparedStatements
from tenure.store.query import Query, Rows, T
from tenure.store.statements import statement
from tenure.store.target import DatabaseTarget

SHORTEST_CONNECT = 2
"""Seconds; libpq takes no less."""


class SyncLink:
    """Used by one thread at a time."""

    def __init__(self, database: DatabaseTarget, role: str) -> None:
        self.database = database
        self._role = role
        self._pid = 0
        self._connection: TimedConnection
        self._cursor: Cursor[Any] | None = None
        self._prepared: PreparedStatements | None = None

    def fetch(self, query: Query[T], *, deadline: float) -> list[T]:
        """Runs the statement in a transaction of its own and returns its rows. `deadline` is by the monotonic clock."""
        try:
            cursor = self._cursor or self._open(deadline)
            self._connection.deadline = deadline
            if self._prepared is not None:
                found: list[T] = self._connection.wait(self._prepared.run(query))
                return found
            cursor.execute(statement(query.name, self.database.schema), query.values)
            rows: Rows = cursor.fetchall() if has_rows(cursor) else []
            return query.decode(rows, lambda: column_names(cursor))
        except (psycopg.Error, OSError, UnicodeError) as error:
            raise self._translated(error, query.name) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Does nothing in a forked process: the connection is its parent's."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None and self._pid == os.getpid():
            self._connection.close()

    def _open(self, deadline: float) -> Cursor[Any]:
        within = max(SHORTEST_CONNECT, min(KEEPALIVE["connect_timeout"], int(deadline - time.monotonic())))
        self._pid = os.getpid()
        self._connection = connect_sync(TimedConnection, self.database, self._role, within)
        self._prepared = None if self.database.pooled else PreparedStatements(self._connection, self.database.schema)
        self._cursor = self._connection.cursor(binary=True)
        return self._cursor

    def _translated(self, error: psycopg.Error | OSError | UnicodeError, asked: str) -> Exception:
        """The error that callers get for one of the driver. Drops a connection whose state is not known."""
        translated = faults.translated(
            error,
            schema=self.database.schema,
            statement=asked,
            server=server_of(self.database.dsn),
            dsn=self.database.dsn,
            connection=self._cursor.connection if self._cursor else None,
        )
        if not isinstance(translated, faults.Refused | SchemaMismatch):
            self.close()
        return translated or error


class TimedConnection(Connection[Any]):
    """psycopg looks at its connection ten times a second while it waits; this one also looks at the clock."""

    deadline: float | None = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        return super().wait(gen if self.deadline is None else _until(gen, self.deadline), *args, **kwargs)


def _until(gen: Generator[Any, Any, Any], deadline: float) -> Generator[Any, Any, Any]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise psycopg.OperationalError("the server did not answer in time")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value
