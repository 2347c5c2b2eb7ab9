"""One connection of our own, that comes back by itself.

A link runs one statement at a time, each in its own transaction. When the connection breaks, the call that noticed raises
`StoreUnavailable` and the next one connects anew: callers decide whether their statement may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from tenure.model.errors import StoreUnavailable
from tenure.pacing import cancellations
from tenure.store import faults
from tenure.store.place import Place
from tenure.store.query import Query
from tenure.store.statements import statement

# A server that vanished without a word is noticed within seconds, not hours.
KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}

# Our statements are written for these plans. Statistics of a queue are always stale, and a plan that was
# cheap on an empty table costs seconds on a full one.
_PLANNER = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}


class Link:
    def __init__(self, place: Place, role: str, *, hot: bool = False, durable: bool = True) -> None:
        """`hot` fixes the plans for statements that go by index only; `durable=False` lets commits be lost in a crash of
        the server, for writes that may as well not have happened."""
        self.place = place
        self._role = role
        self._settings = {**(_PLANNER if hot else {}), **({} if durable else {"synchronous_commit": "off"})}
        self._connection: AsyncConnection[Any] | None = None
        self._cursor: psycopg.AsyncCursor[Any] | None = None
        self._turn = asyncio.Lock()

    async def fetch(self, query: Query) -> list[tuple[Any, ...]]:
        """Runs the statement in a transaction of its own and gives all its rows."""
        async with self._turn, self._guarded():
            return await self._run(self._cursor or await self._open(), query)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Callable[[Query], Awaitable[list[tuple[Any, ...]]]]]:
        """Several statements as one. Gives what runs them, one at a time."""
        async with self._turn, self._guarded():
            cursor = self._cursor or await self._open()
            async with cursor.connection.transaction():
                yield partial(self._run, cursor)

    async def _run(self, cursor: psycopg.AsyncCursor[Any], query: Query) -> list[tuple[Any, ...]]:
        await cursor.execute(statement(query.name, self.place.schema), query.values)
        return await cursor.fetchall() if cursor.description else []

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        """Tells the driver's errors apart, and never keeps a connection whose state is not known."""
        asked_to_end = cancellations()
        try:
            yield
        except (psycopg.Error, OSError) as error:
            if faults.is_outage(error):
                await self._drop()
                if cancellations() > asked_to_end:
                    raise asyncio.CancelledError from error
                raise StoreUnavailable(f"PostgreSQL cannot be reached: {faults.words(error)}") from error
            if faults.is_poison(error):
                raise faults.Refused(faults.words(error), getattr(error, "sqlstate", None)) from error
            if faults.is_missing_schema(error):
                raise faults.schema_missing(error) from error
            raise
        except BaseException:
            await self._drop()
            raise

    async def close(self) -> None:
        async with self._turn:
            await self._drop()

    async def _open(self) -> psycopg.AsyncCursor[Any]:
        self._connection = await connect(self.place, self._role, self._settings)
        self._cursor = self._connection.cursor(binary=True)
        return self._cursor

    async def _drop(self) -> None:
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            await connection.close()


async def connect(place: Place, role: str, settings: Mapping[str, str] | None = None) -> AsyncConnection[Any]:
    """A connection in autocommit. Session settings are left out behind a pooler, where they would leak to strangers."""
    options = [str(conninfo_to_dict(place.dsn).get("options") or "")]
    if settings and not place.pooled:
        options += [f"-c {name}={value}" for name, value in settings.items()]
    return await AsyncConnection.connect(
        place.dsn,
        autocommit=True,
        # Prepared at once: the statements are few and run for as long as the process lives.
        prepare_threshold=None if place.pooled else 0,
        # A pooler passes a changed name on with a statement of its own, each time a session goes to another client.
        application_name="tenure" if place.pooled else f"tenure {role}",
        options=" ".join(options).strip(),
        **KEEPALIVE,
    )
