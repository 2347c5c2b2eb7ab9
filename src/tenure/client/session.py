"""What a client holds open in one event loop: a connection to ask by, one to wake workers by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tenure.client.bulk import enqueue_bulk
from tenure.client.enqueuer import Enqueuer, Met
from tenure.client.refusals import explained
from tenure.client.waiting import Waiting
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.notifier import Notifier
from tenure.store.place import Place
from tenure.store.query import Query


class Session:
    """Belongs to the loop that made it. Closes itself when that loop ends, and loses no wake-up by it."""

    def __init__(self, place: Place, ended: Callable[[], object]) -> None:
        self._place = place
        self._ended = ended
        self._link = Link(place, "client", hot=True)
        self._wide_link = Link(place, "client")
        self._enqueue_link = Link(place, "enqueue")
        self._enqueuer = Enqueuer(self._enqueue_link)
        self._notifier = Notifier(place)
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @cached_property
    def waiting(self) -> Waiting:
        return Waiting(self._place, self._notifier.say)

    async def enqueue(self, texts: list[str], words: Iterable[str]) -> Met:
        with _refusing():
            met = await self._enqueuer.enqueue(texts)
        for word in words:
            self._notifier.tell(word)
        return met

    async def enqueue_bulk(self, chunks: Iterator[str], words: set[str]) -> Met:
        """`words` may still grow while the chunks are drawn."""
        with _refusing():
            met = await enqueue_bulk(self._enqueue_link, chunks)
        for word in words:
            self._notifier.tell(word)
        return met

    async def fetch(self, query: Query) -> list[tuple[Any, ...]]:
        """For statements that go by index."""
        return await self._link.fetch(query)

    async def fetch_all(self, query: Query) -> list[tuple[Any, ...]]:
        """For those that count whole tables."""
        return await self._wide_link.fetch(query)

    def tell(self, word: str) -> None:
        """Wakes whoever waits for this."""
        self._notifier.tell(word)

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.wait([self._keeper])

    async def _keep(self) -> None:
        try:
            await self._notifier.beat.run()
        finally:
            self._ended()
            if "waiting" in self.__dict__:
                await self.waiting.close()
            await self._notifier.close()
            await self._enqueue_link.close()
            await self._wide_link.close()
            await self._link.close()


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except Refused as error:
        raise explained(error) from error
