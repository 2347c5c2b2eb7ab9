"""psycopg2's connections."""

from __future__ import annotations

from typing import Any

from tenure.store.borrowed.base import Blocking
from tenure.store.borrowed.translation import ending, guarded, undoing
from tenure.store.query import Query, T
from tenure.store.statements import statement


class Psycopg2Connection(Blocking):
    # psycopg2 comes without types.
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def source_sync(self) -> object:
        with guarded(self._lost):
            parameters = self._connection.get_dsn_parameters()
        return tuple(parameters.get(name, "") for name in ("host", "hostaddr", "port", "dbname"))

    def fetch_sync(self, query: Query[T], schema: str) -> list[T]:
        with guarded(self._lost), self._connection.cursor() as cursor:
            cursor.execute(statement(query.name, schema), dict(query.values))
            rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            return query.decode(rows, lambda: [column[0] for column in cursor.description or ()])

    def begin_sync(self) -> None:
        with ending(self._lost), self._connection.cursor() as cursor:
            if self._connection.autocommit:
                cursor.execute("begin")

    def commit_sync(self) -> None:
        with ending(self._lost), self._connection.cursor() as cursor:
            # Fails where an earlier error has aborted the transaction.
            cursor.execute("select 1")
            if self._connection.autocommit:
                cursor.execute("commit")
            else:
                self._connection.commit()

    def rollback_sync(self) -> None:
        with undoing(self._lost), self._connection.cursor() as cursor:
            if self._connection.autocommit:
                cursor.execute("rollback")
            else:
                self._connection.rollback()

    def _lost(self) -> bool:
        return bool(self._connection.closed)
