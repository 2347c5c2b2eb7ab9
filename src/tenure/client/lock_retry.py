"""Asking again for jobs that another transaction has locked, and leaving out those that PostgreSQL refuses to change.

The statements of control take what they can have at once and leave alone what another transaction has locked: it is being
claimed, settled or moved. So nobody waits for a lock, and of two who want the same job one wins. Here the rest is asked for
again, for a while.

A row that PostgreSQL refuses to change fails the statement for all of its batch. The batch is then halved until the row is alone,
so that all others are done; the caller raises `JobsRefused` at the end.
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
"""Jobs a statement: few enough to hold their locks for milliseconds only."""

PATIENCE = 5.0
"""Seconds for which a locked job is asked for again. All that Tenure does with a job holds its row for far less."""

MOST_REFUSED = 1000
"""After that many refused jobs a call stops: each of them costs some statements."""

Ask = Callable[[list[UUID]], Awaitable[list[UUID]]]
"""Gives the jobs that were locked."""


class Patience:
    """Waits a little before the next try, until it is used up."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._tries = 0

    async def wait_for(self, ids: Collection[UUID]) -> None:
        await asyncio.sleep(self.pause(ids))

    def pause(self, ids: Collection[UUID]) -> float:
        """How long to sleep before these are asked for again."""
        if time.monotonic() - self._began > PATIENCE:
            raise JobsLocked(ids, PATIENCE)
        self._tries += 1
        return backoff(self._tries - 1) / 4


async def persist(ids: Iterable[UUID], ask: Ask) -> None:
    """Asks for the jobs, some at a time; those that were locked are asked for again."""
    for batch in batches(dict.fromkeys(ids)):
        patience = Patience()
        left = await ask(batch)
        while left:
            await patience.wait_for(left)
            left = await ask(left)


class Refusals:
    """The jobs of one call that PostgreSQL refuses to change."""

    def __init__(self) -> None:
        self._reasons: dict[UUID, str] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    @property
    def stopped(self) -> bool:
        """Nothing more is asked for."""
        return len(self._reasons) >= MOST_REFUSED

    async def persist(self, ids: Iterable[UUID], ask: Ask) -> None:
        """As `persist`, but all jobs are asked for that are not refused. Not for a transaction of the caller's, which the first
        refusal aborts. Raises `Refused` when it is not a matter of single jobs."""
        await persist(ids, lambda batch: self._ask_around(batch, ask))

    async def _ask_around(self, batch: list[UUID], ask: Ask) -> list[UUID]:
        from tenure.store.groups import send_or_halve  # noqa: PLC0415 - brings the driver

        locked: list[UUID] = []

        async def send(group: list[UUID]) -> None:
            if not self.stopped:
                locked.extend(await ask(group))

        async def refuse(job_id: UUID, error: Exception) -> None:
            if not self._reasons:
                await ask([])  # refused without any job as well: then it is not a matter of jobs, and raised
            self._reasons[job_id] = str(error)

        await send_or_halve(batch, send, refuse)
        return locked

    def check(self, done: int) -> None:
        """Raises `JobsRefused` if there are any; `done` others were done."""
        if self._reasons:
            raise JobsRefused(self._reasons, done, stopped=self.stopped)


def batches(ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    source = iter(ids)
    while batch := list(islice(source, BATCH)):
        yield batch
