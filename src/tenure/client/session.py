"""The connections of a client in one event loop, each opened at first use. LISTEN and NOTIFY are shared with workers there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cached_property
from typing import Any

from tenure.client.calls import Call
from tenure.client.enqueue_batches import Enqueuer, ExistingJobs, enqueue_bulk, explained
from tenure.client.reading import repeated
from tenure.client.waiting import Waiting
from tenure.model.wakeup import Wakeup
from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.query import Fetch, Query, T
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups


class Session:
    """Belongs to the event loop that created it. Closes itself when that loop ends, after sending pending wake-ups."""

    def __init__(self, database: DatabaseTarget, wakeups: Wakeups, ended: Callable[[], object]) -> None:
        self.database = database
        self._ended = ended
        self._former: set[asyncio.Task[None]] = set()
        self._link = Link(database, "client", hot=True)
        self._wide_link = Link(database, "client", wide=True)
        self._enqueue_link = Link(database, "enqueue")
        self._wakeups = wakeups
        self._enqueuer = Enqueuer(self._enqueue_link, wakeups.notify)
        self._wakeups.start(self, listening=False)
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @cached_property
    def waiting(self) -> Waiting:
        return Waiting(self._wakeups)

    async def enqueue(self, calls: list[Call[Any]], wakeups: Iterable[Wakeup], within: float) -> ExistingJobs:
        try:
            return await self._enqueuer.enqueue(calls, wakeups, within)
        except Refused as error:
            raise explained(error) from error

    async def enqueue_bulk(self, chunks: Iterator[str], wakeups: set[Wakeup], within: float) -> ExistingJobs:
        """`wakeups` may grow while the chunks are read."""
        with _refusing():
            existing = await enqueue_bulk(self._enqueue_link, chunks, within)
        for wakeup in wakeups:
            self._wakeups.notify(wakeup)
        return existing

    def transaction(self) -> AbstractAsyncContextManager[Fetch]:
        """Several statements of an enqueue that are committed together."""
        return self._enqueue_link.transaction()

    async def fetch(self, query: Query[T]) -> list[T]:
        """For statements that use an index."""
        return await self._link.fetch(query)

    async def fetch_all(self, query: Query[T]) -> list[T]:
        """For statements that read whole tables."""
        return await self._wide_link.fetch(query)

    def reader(self, within: float, *, wide: bool = False) -> Fetch:
        """For statements that are safe to run twice: repeats them while PostgreSQL is away, for `within` seconds in all."""
        return repeated(self.fetch_all, within, long=True) if wide else repeated(self.fetch, within)

    def notify(self, wakeup: Wakeup) -> None:
        """Notifies listeners that wait for this."""
        self._wakeups.notify(wakeup)

    def closing(self, former: Session) -> None:
        """Closes the session that this one replaces, in the background."""
        task = asyncio.get_running_loop().create_task(former.close())
        self._former.add(task)
        task.add_done_callback(self._former.discard)

    async def close(self) -> None:
        self._keeper.cancel()
        await asyncio.wait([self._keeper])

    async def _keep(self) -> None:
        """Runs until the session is closed, or the loop ends and cancels all its tasks."""
        try:
            await asyncio.Event().wait()
        finally:
            self._ended()
            if "waiting" in self.__dict__:
                self.waiting.close()
            await self._wakeups.stop(self)
            await self._enqueue_link.close()
            await self._wide_link.close()
            await self._link.close()


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except Refused as error:
        raise explained(error) from error
