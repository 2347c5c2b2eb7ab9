"""Connections for handlers: a pool for coroutines, one for threads, each made at first use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from tenure.store.link import KEEPALIVE
from tenure.store.place import Place

IDLE = 60.0  # seconds before a connection that nobody uses is closed
PATIENCE = 30.0  # seconds a handler waits for one


class Pools:
    def __init__(self, place: Place, size: int) -> None:
        self._place = place
        self._options: dict[str, Any] = {
            "conninfo": place.dsn,
            "kwargs": {
                "application_name": "tenure handler",
                "prepare_threshold": None if place.pooled else 5,
                **KEEPALIVE,
            },
            "min_size": 0,
            "max_size": size,
            "max_idle": IDLE,
            "timeout": PATIENCE,
            "open": False,
        }
        self._async: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._opening = asyncio.Lock()
        self._sync: ConnectionPool[Connection[Any]] | None = None
        self._lock = threading.Lock()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Committed when the block ends well, rolled back when it raises."""
        async with (await self._opened()).connection() as connection:
            yield connection

    @contextmanager
    def connection_sync(self) -> Iterator[Connection[Any]]:
        with self._opened_sync().connection() as connection:
            yield connection

    async def take(self) -> AsyncConnection[Any]:
        return await (await self._opened()).getconn()

    async def give(self, connection: AsyncConnection[Any]) -> None:
        await (await self._opened()).putconn(connection)

    def take_sync(self) -> Connection[Any]:
        return self._opened_sync().getconn()

    def give_sync(self, connection: Connection[Any]) -> None:
        self._opened_sync().putconn(connection)

    async def close(self) -> None:
        if self._async is not None:
            await self._async.close(timeout=1)
        if self._sync is not None:
            await asyncio.to_thread(self._sync.close, 1)

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
