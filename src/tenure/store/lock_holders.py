"""Who holds the lock that a session of ours waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection

from tenure.model.durations import format_duration
from tenure.store import reports
from tenure.store.columns import column_names
from tenure.store.connecting import connect
from tenure.store.statements import statement
from tenure.store.target import DatabaseTarget

LOOK_EVERY = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class LockHolder:
    pid: int
    application: str
    user: str | None
    state: str | None
    transaction_age: float | None
    query_age: float | None

    def __str__(self) -> str:
        doing = self.state or "state unknown"
        ages = [
            f"{what} for {format_duration(timedelta(seconds=max(1, round(age))))}"
            for what, age in (("in a transaction", self.transaction_age), (doing, self.query_age))
            if age is not None
        ]
        return f"session {self.pid} ({', '.join([self.application, f'user {self.user}', *(ages or [doing])])})"


async def find_lock_holders(database: DatabaseTarget, pid: int) -> list[LockHolder]:
    """On a new connection: all others may wait for the same lock."""
    async with await connect(database, "diagnose") as connection:
        return await _lock_holders(connection, database.schema, pid)


async def _lock_holders(connection: AsyncConnection[Any], schema: str, pid: int) -> list[LockHolder]:
    query = reports.find_lock_holders(pid)
    cursor = await connection.execute(statement(query.name, schema), query.values)
    rows = query.decode(await cursor.fetchall(), lambda: column_names(cursor))
    return [LockHolder(*row) for row in rows]


class LockHolderWatch:
    """Looks every half second for whom a session waits: after a lock timeout it would be too late to ask."""

    def __init__(self) -> None:
        self.seen: list[LockHolder] = []

    @asynccontextmanager
    async def over(self, database: DatabaseTarget, waiting: AsyncConnection[Any]) -> AsyncIterator[None]:
        self.seen = []
        looking = asyncio.create_task(self._look(database, waiting.info.backend_pid))
        try:
            yield
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    async def _look(self, database: DatabaseTarget, pid: int) -> None:
        await asyncio.sleep(LOOK_EVERY)  # most statements wait for nothing, and need no second connection
        with suppress(psycopg.Error, OSError):
            async with await connect(database, "migrate") as connection:
                while True:
                    self.seen = await _lock_holders(connection, database.schema, pid) or self.seen
                    await asyncio.sleep(LOOK_EVERY)
