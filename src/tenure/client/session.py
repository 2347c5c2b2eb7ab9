"""What a client holds open in one event loop: a connection to ask by, one to wake workers by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tenure.client.bulk import enqueue_bulk
from tenure.client.enqueuer import Enqueuer
from tenure.store.link import Link
from tenure.store.notifier import Notifier
from tenure.store.place import Place
from tenure.store.query import Query


class Session:
    """Belongs to the loop that made it. Closes itself when that loop ends, and loses no wake-up by it."""

    def __init__(self, place: Place, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._link = Link(place, "client")
        self._enqueue_link = Link(place, "enqueue")
        self._enqueuer = Enqueuer(self._enqueue_link)
        self._notifier = Notifier(place)
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def enqueue(self, texts: list[str], words: Iterable[str]) -> None:
        await self._enqueuer.enqueue(texts)
        for word in words:
            self._notifier.tell(word)

    async def enqueue_bulk(self, chunks: Iterator[str], words: set[str]) -> None:
        """`words` may still grow while the chunks are drawn."""
        await enqueue_bulk(self._enqueue_link, chunks)
        for word in words:
            self._notifier.tell(word)

    async def fetch(self, query: Query) -> list[tuple[Any, ...]]:
        return await self._link.fetch(query)

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.wait([self._keeper])

    async def _keep(self) -> None:
        try:
            await self._notifier.beat.run()
        finally:
            self._ended()
            await self._notifier.close()
            await self._enqueue_link.close()
            await self._link.close()
