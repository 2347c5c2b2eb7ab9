"""The ways to run statements about chains: on connections of our own, or in a transaction of the caller's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tenure.client.runtime import ClientRuntime
from tenure.model.wakeup import Wakeup
from tenure.store import queues

if TYPE_CHECKING:
    from tenure.store.borrowed import Borrowed
    from tenure.store.query import Query

T = TypeVar("T")


class Access(Protocol):
    async def fetch(self, query: Query[T], /) -> list[T]: ...

    async def notify(self, wakeups: Sequence[Wakeup], /) -> None:
        """When what was written is committed; in a transaction of the caller's only if the settings allow it."""

    async def pause(self, seconds: float, /) -> None: ...


class OwnAccess:
    def __init__(self, runtime: ClientRuntime) -> None:
        self._session = runtime.session()

    async def fetch(self, query: Query[T], /) -> list[T]:
        return await self._session.fetch(query)

    async def notify(self, wakeups: Sequence[Wakeup], /) -> None:
        for wakeup in wakeups:
            self._session.notify(wakeup)

    async def pause(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)


class BorrowedAccess:
    def __init__(self, runtime: ClientRuntime, borrowed: Borrowed) -> None:
        self._database = runtime.database()
        self._borrowed = borrowed
        self._notifies = runtime.notifies_in_transactions()

    async def fetch(self, query: Query[T], /) -> list[T]:
        return await self._borrowed.fetch(query, self._database.schema)

    async def notify(self, wakeups: Sequence[Wakeup], /) -> None:
        if wakeups and self._notifies:
            await self.fetch(queues.notify(self._database.channel, wakeups))

    async def pause(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)


class BorrowedSyncAccess(BorrowedAccess):
    """None of its coroutines is ever suspended: `run_through` runs them without an event loop."""

    async def fetch(self, query: Query[T], /) -> list[T]:
        return self._borrowed.fetch_sync(query, self._database.schema)

    async def pause(self, seconds: float, /) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop


async def access(runtime: ClientRuntime, conn: object | None) -> Access:
    if conn is None:
        return OwnAccess(runtime)
    from tenure.client.enqueue_batches import borrow_checked  # noqa: PLC0415 - imports the driver

    return BorrowedAccess(runtime, await borrow_checked(runtime, conn))


def access_sync(runtime: ClientRuntime, conn: object) -> BorrowedSyncAccess:
    from tenure.client.enqueue_batches import borrow_checked_sync  # noqa: PLC0415 - imports the driver

    return BorrowedSyncAccess(runtime, borrow_checked_sync(runtime, conn))


def run_through(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that is never suspended."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    work.close()
    raise RuntimeError("a coroutine for code without an event loop was suspended")


def wakeups_of(rows: Iterable[Any]) -> list[Wakeup]:
    """Of jobs that have ended: their workers check them, their waiters read them, and the resolver learns of their chains."""
    ended = list(rows)
    found = Wakeup.jobs_lost([row.id for row in ended if row.ran])
    found += [Wakeup.job_ended(row.id) for row in ended if row.watched]
    return [*found, Wakeup.chain_ended()] if any(row.dependants for row in ended) else found
