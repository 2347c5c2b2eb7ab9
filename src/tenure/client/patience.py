"""Asking again for jobs that somebody else holds at the moment.

The statements of control take what they can have at once and leave alone what another transaction has locked: it is being
claimed, settled or moved. So nobody waits for a lock, and of two who want the same job one wins. Here the rest is asked for
again, for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from uuid import UUID

from tenure.model.errors import TenureError
from tenure.pacing import backoff

BATCH = 500
"""Jobs a statement: few enough to hold their locks for milliseconds only."""

PATIENCE = 5.0
"""Seconds for which a locked job is asked for again. All that Tenure does with a job holds its row for far less."""


class NotPossible(TenureError):  # noqa: N818 - reads as the fact it states
    """The job's state does not allow it. Nothing was changed."""

    def __init__(self, ids: Collection[UUID], told: str) -> None:
        self.ids = list(ids)
        super().__init__(f"{_named(self.ids)} {told}")


class JobsLocked(TenureError):  # noqa: N818
    """Another transaction keeps the jobs' rows locked. The others were done."""

    def __init__(self, ids: Collection[UUID]) -> None:
        self.ids = list(ids)
        told = f"held by another transaction for more than {PATIENCE:g} s: find it in pg_stat_activity, end it and ask again"
        super().__init__(f"{_named(self.ids)} {told}")


class Patience:
    """Waits a little before the next try, until it is used up."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._tries = 0

    async def wait_for(self, ids: Collection[UUID]) -> None:
        if time.monotonic() - self._began > PATIENCE:
            raise JobsLocked(ids)
        await asyncio.sleep(backoff(self._tries) / 4)
        self._tries += 1


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


def _named(ids: Sequence[UUID]) -> str:
    shown = ", ".join(str(job_id) for job_id in ids[:3])
    return f"job {shown}" if len(ids) == 1 else f"jobs {shown}" + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
