"""Asking again for jobs that somebody else holds at the moment.

The statements of control take what they can have at once and leave alone what another transaction has locked: it is being
claimed, settled or moved. So nobody waits for a lock, and of two who want the same job one wins. Here the rest is asked for
again, for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from itertools import islice
from uuid import UUID

from tenure.model.errors import JobsLocked
from tenure.pacing import backoff

BATCH = 500
"""Jobs a statement: few enough to hold their locks for milliseconds only."""

PATIENCE = 5.0
"""Seconds for which a locked job is asked for again. All that Tenure does with a job holds its row for far less."""


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


async def persist(ids: Iterable[UUID], ask: Callable[[list[UUID]], Awaitable[list[UUID]]]) -> None:
    """Asks for the jobs, some at a time; `ask` gives those that were locked, and they are asked for again."""
    for batch in batches(dict.fromkeys(ids)):
        patience = Patience()
        left = await ask(batch)
        while left:
            await patience.wait_for(left)
            left = await ask(left)


def batches(ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    source = iter(ids)
    while batch := list(islice(source, BATCH)):
        yield batch
