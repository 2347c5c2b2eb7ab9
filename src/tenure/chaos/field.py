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

OURSELVES = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "default_transaction_isolation": r"read\ committed",
        "statement_timeout": "0",
        "lock_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "search_path": "pg_catalog",
        "DateStyle": "ISO",
        "standard_conforming_strings": "on",
    }.items()
)
"""For the campaign's own sessions, whatever it has done to the settings of the database."""


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
    sheltered: str | None = None
    """The worker that is not struck at present. What a worker forgets is not repaired by its death then, and is seen."""

    async def connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(
            self.dsn, autocommit=True, application_name="chaos", connect_timeout=5, options=OURSELVES, client_encoding="utf8"
        )

    async def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        async with await self.connect() as connection:
            cursor = await connection.execute(statement, values or None)
            return await cursor.fetchall() if cursor.description else []

    def a_worker(self, draws: Random) -> Worker:
        exposed = [worker for worker in self.fleet.workers if worker.name != self.sheltered] or self.fleet.workers
        return draws.choice([worker for worker in exposed if worker.alive] or exposed)

    def a_wire(self, draws: Random) -> tuple[str, Wire]:
        return draws.choice(sorted(self.wires.items()))


@dataclass(frozen=True, slots=True)
class Struck:
    """What a fault did, if more is to be said than words."""

    told: str
    stopped: tuple[int, ...] = ()
    """Processes that did not run while it was at work."""


class NotNow(Exception):  # noqa: N818 - reads as the fact it states
    """There was nothing to strike."""
