"""SQLAlchemy's sessions and connections.

Statements go to the driver as it wants them, past SQLAlchemy's compiler, for which `::` and `%` would need escapes. The
asynchronous ones are the synchronous ones in a greenlet, so everything is written once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenure.model.errors import ConfigError, TransactionError
from tenure.store.borrowed.base import AwaitedConnection, Blocking
from tenure.store.borrowed.positional import positional
from tenure.store.borrowed.translation import ending, guarded, undoing
from tenure.store.query import Query, T
from tenure.store.statements import statement

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Dialect
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.orm import Session

_NAMED = {"psycopg", "psycopg_async", "psycopg2"}
_NUMBERED = {"asyncpg"}


class _Alchemy(Blocking):
    """What a session and a connection have in common, which is nearly everything."""

    _target: Session | Connection

    @abstractmethod
    def _connection(self) -> Connection:
        """The connection of the current transaction; begins one if need be."""

    def source_sync(self) -> object:
        with guarded():
            return self._connection().engine

    def fetch_sync(self, query: Query[T], schema: str) -> list[T]:
        with guarded():
            connection = self._connection()
            sql, values = _spelled(connection.dialect, query, schema)
            # A statement that writes cannot be read through a server-side cursor, even if the caller's options ask for one.
            result = connection.exec_driver_sql(sql, values, execution_options={"stream_results": False})
            rows = [tuple(row) for row in result] if result.returns_rows else []
            return query.decode(rows, lambda: list(result.keys()) if result.returns_rows else [])

    def begin_sync(self) -> None:
        with ending():
            if not self._target.in_transaction():
                self._target.begin()

    def commit_sync(self) -> None:
        with ending():
            if self._target.in_transaction():
                # Fails where an earlier error has aborted the transaction.
                self._connection().exec_driver_sql("select 1")
            self._target.commit()

    def rollback_sync(self) -> None:
        with undoing():
            self._target.rollback()


class AlchemyConnection(_Alchemy):
    def __init__(self, connection: Connection) -> None:
        self._target: Connection = connection

    def _connection(self) -> Connection:
        return self._target


class AlchemySession(_Alchemy):
    def __init__(self, session: Session) -> None:
        self._target: Session = session

    def _connection(self) -> Connection:
        return self._target.connection()

    def commit_sync(self) -> None:
        # The caller's own statements, hence the caller's own errors.
        self._target.flush()
        self._refuse_several()
        super().commit_sync()

    def _refuse_several(self) -> None:
        """A session may write through several engines. It commits them one after another, not together."""
        transaction = self._target.get_transaction()
        used = {id(entry[0]) for entry in getattr(transaction, "_connections", {}).values()}
        if len(used) > 1:
            raise TransactionError(
                f"this session writes through {len(used)} connections (binds=...), which do not commit together: use a session "
                "that is bound to Tenure's database only"
            )


class AlchemyAsync(AwaitedConnection):
    def __init__(self, target: AsyncSession | AsyncConnection, blocking: Callable[[Any], _Alchemy]) -> None:
        self._target = target
        self._blocking = blocking

    async def source(self) -> object:
        return await self._target.run_sync(lambda target: self._blocking(target).source_sync())

    async def fetch(self, query: Query[T], schema: str) -> list[T]:
        return await self._target.run_sync(lambda target: self._blocking(target).fetch_sync(query, schema))

    async def begin(self) -> None:
        await self._target.run_sync(lambda target: self._blocking(target).begin_sync())

    async def commit(self) -> None:
        await self._target.run_sync(lambda target: self._blocking(target).commit_sync())

    async def rollback(self) -> None:
        await self._target.run_sync(lambda target: self._blocking(target).rollback_sync())


def _spelled(dialect: Dialect, query: Query[T], schema: str) -> tuple[str, Any]:
    """The statement and its values as the driver below wants them."""
    if dialect.name == "postgresql" and dialect.driver in _NAMED:
        return statement(query.name, schema), dict(query.values)
    if dialect.name == "postgresql" and dialect.driver in _NUMBERED:
        spelled = positional(query.name, schema)
        return spelled.sql, spelled.values(query)
    raise ConfigError(
        f"SQLAlchemy works with {dialect.name}+{dialect.driver} here: "
        "use an engine on postgresql+psycopg, postgresql+psycopg2 or postgresql+asyncpg"
    )
