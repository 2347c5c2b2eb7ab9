"""Django's connections. Django ends its transactions itself, by `transaction.atomic()`, and is only joined."""

from __future__ import annotations

from typing import Any, NoReturn

from tenure.model.errors import ConfigError
from tenure.store.borrowed.base import Blocking, Rows
from tenure.store.borrowed.translation import guarded
from tenure.store.query import Query
from tenure.store.statements import statement


class DjangoConnection(Blocking):
    def __init__(self, connection: Any) -> None:
        # Django's caches stand behind the same kind of proxy as its databases.
        vendor = getattr(connection, "vendor", "no database")
        if vendor != "postgresql":
            raise ConfigError(f"this connection of Django's leads to {vendor}: pass connections[alias] of one on PostgreSQL")
        self._connection = connection

    def fetch_sync(self, query: Query, schema: str) -> Rows:
        with guarded(), self._connection.cursor() as cursor:
            cursor.execute(statement(query.name, schema), dict(query.values))
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def begin_sync(self) -> None:
        self._refuse()

    def commit_sync(self) -> None:
        self._refuse()

    def rollback_sync(self) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigError("Django ends its transactions itself: enqueue inside of `with transaction.atomic():`")
