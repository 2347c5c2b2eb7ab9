"""A few links to one database, for callers that must not wait for each other's statements."""

from __future__ import annotations

import asyncio
from collections import deque

from tenure.store.link import Link
from tenure.store.query import Query, T
from tenure.store.target import DatabaseTarget


class LinkPool:
    """Each link connects when it is first used. Under little load the same ones are used again, and the others stay closed."""

    def __init__(self, database: DatabaseTarget, role: str, *, size: int, within: float, hot: bool) -> None:
        """`hot`: for statements that go by index only; else for those that read many rows. `within`: seconds after which a
        statement is canceled, so that no statement holds a link for longer."""
        self._links = [Link(database, role, hot=hot, wide=not hot, within=within) for _ in range(size)]
        self._idle = deque(self._links)
        self._free = asyncio.Semaphore(size)

    async def fetch(self, query: Query[T]) -> list[T]:
        """Runs the statement in its own transaction, on the first link that is free."""
        async with self._free:
            link = self._idle.popleft()
            try:
                return await link.fetch(query)
            finally:
                self._idle.appendleft(link)

    async def close(self) -> None:
        for link in self._links:
            await link.close()
