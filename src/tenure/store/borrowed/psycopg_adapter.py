"""psycopg's connections.

Where no transaction is open, `begin` enters a block of psycopg's own, also without autocommit: there the first
`connection.transaction()` of the caller would otherwise be the outermost and commit on its own, before us.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncTransaction, Connection, Cursor, Rollback, Transaction, errors
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from tenure.model.errors import ConfigError
from tenure.store.borrowed.base import AwaitedConnection, Blocking
from tenure.store.borrowed.translation import ending, guarded, undoing
from tenure.store.columns import column_names
from tenure.store.query import Query, T
from tenure.store.statements import statement


class PsycopgConnection(Blocking):
    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._block: AbstractContextManager[Transaction] | None = None
        self._transaction: Transaction | None = None

    def source_sync(self) -> object:
        return _address(self._connection)

    def fetch_sync(self, query: Query[T], schema: str) -> list[T]:
        with guarded():
            # Not by connection.cursor(): the caller may have set another kind of cursor or of row.
            cursor = Cursor(self._connection, row_factory=tuple_row)
            cursor.execute(statement(query.name, schema), query.values, binary=True)
            try:
                return query.decode(cursor.fetchall(), lambda: column_names(cursor))
            except psycopg.ProgrammingError as error:
                _raise_unless_rowless(error)
        return []

    def begin_sync(self) -> None:
        if not _is_idle(self._connection):
            return
        with ending():
            block = self._connection.transaction()
            self._transaction = block.__enter__()
            self._block = block

    def commit_sync(self) -> None:
        _refuse_aborted(self._connection)
        block, self._block = self._block, None
        with ending(), _no_block_of_the_caller():
            if block is None:
                self._connection.commit()
            else:
                block.__exit__(None, None, None)
                _check_committed(self._transaction)

    def rollback_sync(self) -> None:
        block, self._block = self._block, None
        with undoing(), _no_block_of_the_caller():
            if block is None:
                self._connection.rollback()
            else:
                block.__exit__(Rollback, Rollback(), None)


class PsycopgAsyncConnection(AwaitedConnection):
    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection
        self._block: AbstractAsyncContextManager[AsyncTransaction] | None = None
        self._transaction: AsyncTransaction | None = None

    async def source(self) -> object:
        return _address(self._connection)

    async def fetch(self, query: Query[T], schema: str) -> list[T]:
        with guarded():
            cursor = AsyncCursor(self._connection, row_factory=tuple_row)
            await cursor.execute(statement(query.name, schema), query.values, binary=True)
            try:
                return query.decode(await cursor.fetchall(), lambda: column_names(cursor))
            except psycopg.ProgrammingError as error:
                _raise_unless_rowless(error)
        return []

    async def begin(self) -> None:
        if not _is_idle(self._connection):
            return
        with ending():
            block = self._connection.transaction()
            self._transaction = await block.__aenter__()
            self._block = block

    async def commit(self) -> None:
        _refuse_aborted(self._connection)
        block, self._block = self._block, None
        with ending(), _no_block_of_the_caller():
            if block is None:
                await self._connection.commit()
            else:
                await block.__aexit__(None, None, None)
                _check_committed(self._transaction)

    async def rollback(self) -> None:
        block, self._block = self._block, None
        with undoing(), _no_block_of_the_caller():
            if block is None:
                await self._connection.rollback()
            else:
                await block.__aexit__(Rollback, Rollback(), None)


_addresses: WeakKeyDictionary[Connection[Any] | AsyncConnection[Any], object] = WeakKeyDictionary()


def _address(connection: Connection[Any] | AsyncConnection[Any]) -> object:
    address = _addresses.get(connection)
    if address is None:
        with guarded():
            info = connection.info
            address = _addresses[connection] = info.host, info.hostaddr, info.port, info.dbname
    return address


def _raise_unless_rowless(error: psycopg.ProgrammingError) -> None:
    """For statements without rows. Asked beforehand, a cursor in a pipeline of the caller's says that all are so."""
    if error.sqlstate is not None:
        raise error


def _is_idle(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    if connection.info.pipeline_status is not PipelineStatus.OFF:
        raise ConfigError("a pipeline reports a commit before it is done: pass the connection outside of its pipeline() block")
    return connection.info.transaction_status is TransactionStatus.IDLE


def _refuse_aborted(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    if connection.info.transaction_status is TransactionStatus.INERROR:
        raise errors.InFailedSqlTransaction("an earlier error has aborted this transaction: it can only be rolled back")


def _check_committed(transaction: Transaction | AsyncTransaction | None) -> None:
    # On a lost connection a block ends without a word and without a commit.
    if transaction is None or transaction.status is not transaction.Status.COMMITTED:
        raise psycopg.OperationalError("the connection was lost before the commit")


@contextmanager
def _no_block_of_the_caller() -> Iterator[None]:
    try:
        yield
    except psycopg.ProgrammingError as error:
        if error.sqlstate is not None:
            raise
        raise ConfigError(
            f"this transaction cannot be ended here: {error}; pass the connection outside of its own transaction() block"
        ) from error
