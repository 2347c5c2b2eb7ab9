"""Connections for handlers: a pool for coroutines and one for threads, each created at first use.

Settings of the role and the database apply (isolation level, timeouts and so on). Only what our own statements on these
connections need is set: the client encoding UTF-8, and the writable one of several hosts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from tenure.model.current import current_run
from tenure.model.errors import StoreUnavailable
from tenure.store.connecting import KEEPALIVE, target
from tenure.store.quota import Holder, Quota
from tenure.store.target import DatabaseTarget

IDLE = 60.0  # seconds before an unused connection is closed
PATIENCE = 30.0  # seconds a handler waits for one
UNLIMITED = 10_000  # `Quota` limits the number
UNREACHABLE = f"PostgreSQL cannot be reached: no connection for a handler within {PATIENCE:g} s; see the log of psycopg.pool"


class Pools:
    def __init__(self, database: DatabaseTarget, size: int) -> None:
        self._database = database
        self._options: dict[str, Any] = {
            "conninfo": database.dsn,
            "kwargs": {
                "application_name": "tenure handler",
                "prepare_threshold": None if database.pooled else 5,
                "client_encoding": "UTF8",
                **target(database.dsn),
                **KEEPALIVE,
            },
            "min_size": 0,
            "max_size": UNLIMITED,
            "max_idle": IDLE,
            "timeout": PATIENCE,
            "open": False,
        }
        self._async: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._opening = asyncio.Lock()
        self._sync: ConnectionPool[Connection[Any]] | None = None
        self._lock = threading.Lock()
        self._quota, self._sync_quota = Quota(size), Quota(size)
        self._holders: dict[int, Holder] = {}
        """By the identity of the connection."""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Committed when the block ends normally, rolled back when it raises."""
        connection = await self.take()
        try:
            async with connection:
                yield connection
        finally:
            await self.give(connection)

    @contextmanager
    def connection_sync(self) -> Iterator[Connection[Any]]:
        connection = self.take_sync()
        try:
            with connection:
                yield connection
        finally:
            self.give_sync(connection)

    async def take(self) -> AsyncConnection[Any]:
        holder, began = _holder(), time.monotonic()
        await self._admit(holder)
        try:
            connection = await (await self._opened()).getconn(timeout=_left(began))
        except BaseException as error:
            self._quota.release(holder)
            if isinstance(error, PoolTimeout):
                raise StoreUnavailable(UNREACHABLE) from error
            raise
        self._holders[id(connection)] = holder
        return connection

    async def give(self, connection: AsyncConnection[Any]) -> None:
        try:
            await (await self._opened()).putconn(connection)
        finally:
            self._quota.release(self._holders.pop(id(connection)))

    def take_sync(self) -> Connection[Any]:
        holder, began = _holder(), time.monotonic()
        granted = threading.Event()
        ticket = self._sync_quota.request(holder, granted.set)
        if not granted.wait(PATIENCE) and self._sync_quota.withdraw(ticket):
            raise _exhausted(self._sync_quota)
        try:
            connection = self._opened_sync().getconn(timeout=_left(began))
        except BaseException as error:
            self._sync_quota.release(holder)
            if isinstance(error, PoolTimeout):
                raise StoreUnavailable(UNREACHABLE) from error
            raise
        self._holders[id(connection)] = holder
        return connection

    def give_sync(self, connection: Connection[Any]) -> None:
        try:
            self._opened_sync().putconn(connection)
        finally:
            self._sync_quota.release(self._holders.pop(id(connection)))

    async def close(self) -> None:
        if self._async is not None:
            await self._async.close(timeout=1)
        if self._sync is not None:
            await asyncio.to_thread(self._sync.close, 1)

    async def _admit(self, holder: Holder) -> None:
        granted = asyncio.Event()
        ticket = self._quota.request(holder, granted.set)
        try:
            async with asyncio.timeout(PATIENCE):
                await granted.wait()
        except BaseException as error:
            if not self._quota.withdraw(ticket):
                self._quota.release(holder)
            if isinstance(error, TimeoutError):
                raise _exhausted(self._quota) from None
            raise

    async def _opened(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        async with self._opening:
            if self._async is None:
                self._async = AsyncConnectionPool(**self._options, name="tenure handlers")
                await self._async.open()
        return self._async

    def _opened_sync(self) -> ConnectionPool[Connection[Any]]:
        with self._lock:
            if self._sync is None:
                self._sync = ConnectionPool(**self._options, name="tenure handler threads")
                self._sync.open()
        return self._sync


def _holder() -> Holder:
    """The current run. Code outside of a run holds one connection at a time."""
    return current_run.get() or object()


def _left(began: float) -> float:
    return max(1.0, began + PATIENCE - time.monotonic())


def _exhausted(quota: Quota) -> StoreUnavailable:
    return StoreUnavailable(
        f"no connection was free for {PATIENCE:g} s: handlers in this process hold {quota.in_use} of {quota.size}; "
        "leave the blocks of ctx.db() and ctx.transaction() sooner, or raise workers.concurrency",
        cause="pool",
    )
