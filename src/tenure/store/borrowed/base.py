"""What every adapter can do, and the two halves that each of them needs only one of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NoReturn

from tenure.model.errors import ConfigError
from tenure.store.query import Query, T


class Borrowed(ABC):
    is_async: ClassVar[bool]
    """The connection can only be used with await."""
    thread_bound: ClassVar[bool] = False
    """Only the thread that opened the connection may use it."""

    @abstractmethod
    def source_sync(self) -> object:
        """Equal for connections to the same database: an address as a tuple, or an object that can be referred to weakly."""

    @abstractmethod
    def fetch_sync(self, query: Query[T], schema: str) -> list[T]:
        """Runs the statement in the caller's transaction and returns its rows."""

    @abstractmethod
    def begin_sync(self) -> None:
        """Makes sure that a transaction is open."""

    @abstractmethod
    def commit_sync(self) -> None:
        """Ends the transaction. Raises when an earlier error has aborted it: PostgreSQL would roll back and call it a commit."""

    @abstractmethod
    def rollback_sync(self) -> None:
        """Ends the transaction. Does not raise when the connection is lost: the transaction is rolled back then."""

    def after_commit_sync(self) -> None:  # noqa: B027 - most have nothing to do
        """What the caller's framework runs after a commit, apart from the commit: it may raise."""

    @abstractmethod
    async def source(self) -> object: ...

    @abstractmethod
    async def fetch(self, query: Query[T], schema: str) -> list[T]: ...

    @abstractmethod
    async def begin(self) -> None: ...

    @abstractmethod
    async def commit(self) -> None: ...

    @abstractmethod
    async def rollback(self) -> None: ...


class Blocking(Borrowed):
    """A synchronous connection: awaited, it works in place, as the caller's own statements on it do."""

    is_async = False

    async def source(self) -> object:
        return self.source_sync()

    async def fetch(self, query: Query[T], schema: str) -> list[T]:
        return self.fetch_sync(query, schema)

    async def begin(self) -> None:
        self.begin_sync()

    async def commit(self) -> None:
        self.commit_sync()

    async def rollback(self) -> None:
        self.rollback_sync()


class AwaitedConnection(Borrowed):
    """An asynchronous connection: it can only be used with await."""

    is_async = True

    def source_sync(self) -> object:
        self._needs_await()

    def fetch_sync(self, query: Query[T], schema: str) -> list[T]:
        del query, schema
        self._needs_await()

    def begin_sync(self) -> None:
        self._needs_await()

    def commit_sync(self) -> None:
        self._needs_await()

    def rollback_sync(self) -> None:
        self._needs_await()

    def _needs_await(self) -> NoReturn:
        raise ConfigError(
            "this connection can only be used with await: use `await job.enqueue(...)` in a coroutine, or pass a synchronous one"
        )
