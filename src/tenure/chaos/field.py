"""All that can be struck: the server, the workers, the wires between them, and what stands beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from psycopg import AsyncConnection

from tenure.chaos.disk import Disk
from tenure.chaos.fleet import Fleet, Worker
from tenure.chaos.pooler import Pooler
from tenure.chaos.wire import Wire
from tenure.embedded import EmbeddedServer


@dataclass
class Field:
    dsn: str
    """A direct way to the server, for the campaign itself."""
    lease: float
    folder: Path
    server: EmbeddedServer | None = None
    """None: somebody else's, which is not ours to stop."""
    fleet: Fleet = field(default_factory=lambda: Fleet([]))
    wires: dict[str, Wire] = field(default_factory=dict)
    pooler: Pooler | None = None
    disk: Disk | None = None

    async def connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(self.dsn, autocommit=True, application_name="chaos", connect_timeout=5)

    async def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        async with await self.connect() as connection:
            cursor = await connection.execute(statement, values or None)
            return await cursor.fetchall() if cursor.description else []

    def a_worker(self, draws: Random) -> Worker:
        return draws.choice([worker for worker in self.fleet.workers if worker.alive] or self.fleet.workers)

    def a_wire(self, draws: Random) -> tuple[str, Wire]:
        return draws.choice(sorted(self.wires.items()))


class NotNow(Exception):  # noqa: N818 - reads as the fact it states
    """There was nothing to strike."""
