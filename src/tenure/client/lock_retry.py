"""Trying again for jobs that another transaction has locked, and leaving out jobs that PostgreSQL refuses to change.

The control statements change the rows they can lock at once, and skip rows that another transaction has locked: those are being
claimed, settled or moved. So no statement waits for a lock, and of two that want the same job one wins. The skipped jobs are
tried again here, for a few seconds.

A row that PostgreSQL refuses to change fails the statement for its whole batch. The batch is then halved until the row is alone,
so that all other jobs are changed; the caller raises `JobsRefused` at the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from itertools import islice
from uuid import UUID

from tenure.model.errors import JobsLocked, JobsRefused
from tenure.periodic import backoff

BATCH = 500
"""Jobs in a statement: few enough to hold their locks for milliseconds only."""

PATIENCE = 5.0
"""Seconds for which a locked job is tried again. Tenure itself locks a job's row for far less."""

MOST_REFUSED = 1000
"""A call stops after this many refused jobs, because each of them costs several statements."""

Ask = Callable[[list[UUID]], Awaitable[list[UUID]]]
"""Returns the jobs that were locked."""


class LockRetry:
    """Waits before the next try. Raises `JobsLocked` after `PATIENCE` seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._tries = 0

    async def wait_for(self, ids: Collection[UUID]) -> None:
        await asyncio.sleep(self.pause(ids))

    def pause(self, ids: Collection[UUID]) -> float:
        """Seconds to sleep before these are tried again."""
        if time.monotonic() - self._began > PATIENCE:
            raise JobsLocked(ids, PATIENCE)
        self._tries += 1
        return backoff(self._tries - 1) / 4


async def persist(ids: Iterable[UUID], ask: Ask) -> None:
    """Asks for the jobs in batches, and again for the ones that were locked."""
    for batch in batches(dict.fromkeys(ids)):
        retry = LockRetry()
        left = await ask(batch)
        while left:
            await retry.wait_for(left)
            left = await ask(left)


class Refusals:
    """The jobs of one call that PostgreSQL refuses to change."""

    def __init__(self) -> None:
        self._reasons: dict[UUID, str] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    @property
    def stopped(self) -> bool:
        """No more jobs are tried."""
        return len(self._reasons) >= MOST_REFUSED

    async def persist(self, ids: Iterable[UUID], ask: Ask) -> None:
        """Like `persist`, but changes all jobs that are not refused. Not for the caller's transaction, which the first refusal
        aborts. Raises `Refused` if the statement fails for any job."""
        await persist(ids, lambda batch: self._ask_around(batch, ask))

    async def _ask_around(self, batch: list[UUID], ask: Ask) -> list[UUID]:
        from tenure.store.groups import send_or_halve  # noqa: PLC0415 - imports the driver

        locked: list[UUID] = []

        async def send(group: list[UUID]) -> None:
            if not self.stopped:
                locked.extend(await ask(group))

        async def refuse(job_id: UUID, error: Exception) -> None:
            if not self._reasons:
                await ask([])  # raises if the statement is refused without any job as well
            self._reasons[job_id] = str(error)

        await send_or_halve(batch, send, refuse)
        return locked

    def check(self, done: int) -> None:
        """Raises `JobsRefused` if any job was refused. `done` is how many others were changed."""
        if self._reasons:
            raise JobsRefused(self._reasons, done, stopped=self.stopped)


def batches(ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    source = iter(ids)
    while batch := list(islice(source, BATCH)):
        yield batch
