"""The connections of the web server in one event loop.

Reads have their own few connections, on which statements that take longer than two seconds are canceled: a dashboard must not
keep the database busy, and one slow list must not hold up the others. Enqueues and LISTEN are those of every client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tenure.client.reading import repeat_while_away
from tenure.client.session import Session
from tenure.model.errors import StoreUnavailable
from tenure.model.wakeup import Wakeup
from tenure.store.faults import StatementTimeout
from tenure.store.link_pool import LinkPool
from tenure.store.query import Fetch, Query, T
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups

READ_WITHIN = 2.0  # seconds
WRITE_WITHIN = 10.0
READERS, WIDE_READERS, WRITERS = 4, 2, 2


class WebSession(Session):
    def __init__(self, database: DatabaseTarget, wakeups: Wakeups, ended: Callable[[], object]) -> None:
        super().__init__(database, wakeups, ended)
        self._readers = LinkPool(database, "web", size=READERS, within=READ_WITHIN, hot=True)
        self._wide_readers = LinkPool(database, "web", size=WIDE_READERS, within=READ_WITHIN, hot=False)
        self._writers = LinkPool(database, "web", size=WRITERS, within=WRITE_WITHIN, hot=True)

    async def fetch(self, query: Query[T]) -> list[T]:
        """For changes, each by index."""
        return await self._writers.fetch(query)

    async def fetch_all(self, query: Query[T]) -> list[T]:
        return await self._wide_readers.fetch(query)

    def reader(self, within: float, *, wide: bool = False) -> Fetch:
        """Repeats statements while PostgreSQL is away, but not those that it is too slow for."""
        pool = self._wide_readers if wide else self._readers
        deadline = asyncio.get_running_loop().time() + within

        def failed(error: StoreUnavailable, pause: float) -> None:
            if isinstance(error, StatementTimeout) or asyncio.get_running_loop().time() + pause > deadline:
                raise error

        async def read(query: Query[T]) -> list[T]:
            return await repeat_while_away(lambda _: pool.fetch(query), failed)

        return read

    def on_wakeup(self, received: Callable[[Wakeup], None]) -> Callable[[], None]:
        """Calls it for each notification. Returns a function that ends this."""
        self._wakeups.listen()
        return self._wakeups.subscribe(received)

    async def _keep(self) -> None:
        try:
            await super()._keep()
        finally:
            for pool in (self._readers, self._wide_readers, self._writers):
                await pool.close()
