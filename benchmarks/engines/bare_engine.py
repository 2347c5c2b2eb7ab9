"""What one connection can do at most: a durable insert for each step, one after the other. No lease, no replay, no result.

It is the limit of every engine that stores a step before the next one begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import asyncpg

from benchmarks.engines.protocol import main

CONNECTIONS = 10

CREATE = """
    create table bare_steps (
        workflow bigint, number integer, name text not null, output jsonb, at timestamptz not null default clock_timestamp(),
        primary key (workflow, number))"""
INSERT = "insert into bare_steps (workflow, number, name, output) values ($1, $2, 'nothing', $3)"


async def nothing(number: int) -> int:
    return number


class RunningBare:
    def __init__(self, connections: list[Any]) -> None:
        self._connections = connections
        self._begun = 0

    async def run_workflows(self, steps: list[int]) -> None:
        counts = iter(steps)
        await asyncio.gather(*(self._run(connection, counts) for connection in self._connections))

    async def _run(self, connection: Any, counts: Any) -> None:
        for count in counts:
            self._begun += 1
            workflow = self._begun
            for number in range(count):
                await connection.execute(INSERT, workflow, number, str(await nothing(number)))


class BareEngine:
    version: str = f"asyncpg {version('asyncpg')}"
    settings: str = f"one insert and one commit per step, {CONNECTIONS} connections"

    async def prepare(self, dsn: str) -> None:
        connection = await asyncpg.connect(dsn)
        await connection.execute("drop table if exists bare_steps")
        await connection.execute(CREATE)
        await connection.close()

    @asynccontextmanager
    async def running(self, dsn: str) -> AsyncIterator[RunningBare]:
        connections = [await asyncpg.connect(dsn) for _ in range(CONNECTIONS)]
        await connections[0].execute("truncate bare_steps")
        yield RunningBare(connections)
        for connection in connections:
            await connection.close()


if __name__ == "__main__":
    main(BareEngine())
