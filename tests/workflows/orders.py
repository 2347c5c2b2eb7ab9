"""Plays the statements of several sessions in a given order. A session that waits for a lock gets its answer later; the others
continue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from tenure.store.query import Query
from tenure.store.statements import statement
from tests.interleavings.orders import next_turn, orders

BLOCKED_AFTER = 0.1
"""Seconds without an answer: it waits for a lock."""

Part = Query[Any] | Callable[[list[list[tuple[Any, ...]]]], Query[Any]] | None
"""A statement, or a function that makes one from the earlier answers of its session; None: commit."""


class Session:
    def __init__(self, connection: psycopg.AsyncConnection[Any], script: Sequence[Part]) -> None:
        self._connection = connection
        self._script = list(script)
        self._running: asyncio.Task[None] | None = None
        self.answers: list[list[tuple[Any, ...]]] = []

    @property
    def waits(self) -> bool:
        return self._running is not None and not self._running.done()

    async def step(self) -> None:
        self._running = asyncio.create_task(self._next())
        await asyncio.wait([self._running], timeout=BLOCKED_AFTER)
        await self.check()

    async def check(self) -> None:
        if self._running is not None and self._running.done():
            await self._running

    async def finished(self) -> None:
        if self._running is not None:
            await self._running

    async def _next(self) -> None:
        part = self._script.pop(0)
        if part is None:
            await self._connection.commit()
            return
        query = part if isinstance(part, Query) else part(self.answers)
        cursor = await self._connection.execute(statement(query.name, "tenure"), query.values)
        self.answers.append(await cursor.fetchall() if cursor.description else [])


async def play(dsn: str, scripts: Sequence[Sequence[Part]], order: Sequence[int]) -> list[Session]:
    connections = [await psycopg.AsyncConnection.connect(dsn, prepare_threshold=None) for _ in scripts]
    try:
        sessions = [Session(connection, script) for connection, script in zip(connections, scripts, strict=True)]
        waiting = list(order)
        while waiting:
            for session in sessions:
                await session.check()
            place = next_turn(waiting, frozenset(who for who, session in enumerate(sessions) if session.waits))
            if place is None:
                await asyncio.sleep(0.005)
                continue
            await sessions[waiting.pop(place)].step()
        for session in sessions:
            await session.finished()
        return sessions
    finally:
        for connection in connections:
            await connection.close()


def all_orders(scripts: Sequence[Sequence[Part]]) -> list[tuple[int, ...]]:
    return list(orders([len(script) for script in scripts]))
