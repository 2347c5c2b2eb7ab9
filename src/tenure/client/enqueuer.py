"""Concurrent enqueues share a statement: at once when idle, together while one is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from tenure.model.errors import StoreUnavailable
from tenure.periodic import backoff
from tenure.store import jobs
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.jobs import EnqueuedRow
from tenure.store.link import Link

LARGEST_GROUP = 1000

ExistingJobs = dict[str, tuple[UUID, bool]]
"""By the id asked for: the job with the same key that was there before, and whether its input is another."""


def existing_in(rows: list[EnqueuedRow]) -> ExistingJobs:
    """A job that stands for itself was written by an earlier, unanswered call of our own."""
    return {row.asked: (UUID(row.id), row.differs) for row in rows if row.id != row.asked}


def array_of(texts: Iterable[str]) -> str:
    return "[" + ",".join(texts) + "]"


def out_of_time(within: float, error: BaseException | None) -> StoreUnavailable:
    """Whether the last try was committed is not known: its answer never came."""
    cause = " ".join(str(error or "it did not answer").removeprefix("PostgreSQL cannot be reached: ").split())
    return StoreUnavailable(
        f"PostgreSQL could not be reached within {within:g} s ({cause}); whether the job was enqueued is not known: "
        "repeat the call with a key to be sure that there is one"
    )


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one call: all of them or none."""

    texts: list[str]
    done: asyncio.Future[ExistingJobs] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    error: StoreUnavailable | None = None
    """Of the last try."""


class Enqueuer:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: list[Batch] = []
        self._writer: asyncio.Task[None] | None = None

    async def enqueue(self, texts: list[str], within: float) -> ExistingJobs:
        """Returns when the jobs are durable. A caller that is cancelled meanwhile does not take others along.

        While PostgreSQL is away the jobs are sent again, for `within` seconds; after that, no more.
        """
        batch = Batch(texts)
        self._waiting.append(batch)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all())
        try:
            async with asyncio.timeout(within):
                return await batch.done
        except TimeoutError:
            raise out_of_time(within, batch.error) from batch.error

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await send_or_halve(self._take(), self._write, self._refuse)
        finally:
            self._writer = None

    def _take(self) -> list[Batch]:
        size = 0
        for number, batch in enumerate(self._waiting):
            size += len(batch.texts)
            if size > LARGEST_GROUP and number:
                break
        else:
            number = len(self._waiting)
        group, self._waiting = self._waiting[:number], self._waiting[number:]
        return group

    async def _write(self, group: list[Batch]) -> None:
        try:
            met = await self._send(group)
        except Refused:
            raise
        except BaseException as error:
            self._fail(group, error if isinstance(error, Exception) else StoreUnavailable("the event loop ended"))
            if not isinstance(error, Exception):
                raise
        else:
            for batch in group:
                if not batch.done.done():
                    batch.done.set_result(met)

    async def _send(self, group: list[Batch]) -> ExistingJobs:
        """Repeated until the last caller has run out of time. A batch whose caller gave up is not sent again."""
        failures = 0
        while wanted := [batch for batch in group if not batch.done.done()]:
            text = array_of(text for batch in wanted for text in batch.texts)
            try:
                # After a failure it is unknown whether the commit happened: the ids are the same, so asking again is safe.
                return existing_in(await self._link.fetch(jobs.enqueue(text, again=failures > 0)))
            except StoreUnavailable as error:
                failures += 1
                for batch in wanted:
                    batch.error = error
                await asyncio.sleep(backoff(failures))
        return {}

    async def _refuse(self, batch: Batch, error: Refused) -> None:
        self._fail([batch], error)

    def _fail(self, group: list[Batch], error: Exception) -> None:
        for batch in group:
            if not batch.done.done():
                batch.done.set_exception(error)
