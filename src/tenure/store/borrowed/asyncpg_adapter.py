"""asyncpg's connections, whether a pool's or the caller's alone."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tenure.model.errors import ConfigError
from tenure.store.borrowed.base import AwaitedConnection
from tenure.store.borrowed.positional import positional
from tenure.store.borrowed.translation import ending, guarded, undoing
from tenure.store.query import Query, T


class AsyncpgConnection(AwaitedConnection):
    # asyncpg comes without types.
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._transaction: Any = None

    async def source(self) -> object:
        return getattr(self._connection, "_con", self._connection)  # of a pool's: what is behind the proxy

    async def fetch(self, query: Query[T], schema: str) -> list[T]:
        spelled = positional(query.name, schema)
        with guarded(self._lost):
            records = await self._connection.fetch(spelled.sql, *spelled.values(query))
        # Without rows there is nothing that names the columns, and nothing to decode.
        return query.decode([tuple(record) for record in records], lambda: list(records[0].keys())) if records else []

    async def begin(self) -> None:
        if self._transaction is not None:
            return
        self._refuse_another()
        with ending(self._lost):
            transaction = self._connection.transaction()
            await transaction.start()
            self._transaction = transaction

    async def commit(self) -> None:
        if self._transaction is None:
            self._refuse_another()
            return
        with ending(self._lost):
            # Fails where an earlier error has aborted the transaction.
            await self._connection.execute("select 1")
            transaction, self._transaction = self._transaction, None
            await transaction.commit()

    async def rollback(self) -> None:
        if self._transaction is None:
            self._refuse_another()
            return
        transaction, self._transaction = self._transaction, None
        with undoing(self._lost):
            await transaction.rollback()

    def _refuse_another(self) -> None:
        """Only the object that began a transaction may end it: behind its back, asyncpg would lose count of savepoints."""
        if not self._lost() and self._connection.is_in_transaction():
            raise ConfigError(
                "this asyncpg connection is in a transaction already, which only who began it can end: "
                "pass the connection outside of its own transaction() block"
            )

    def _lost(self) -> bool:
        # A pool takes back a connection that broke, and what it has taken back answers nothing at all.
        with suppress(Exception):
            return bool(self._connection.is_closed())
        return True
