"""Many jobs in one transaction, encoded while PostgreSQL is busy with the ones before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from tenure.client.enqueuer import ExistingJobs, existing_in, out_of_time
from tenure.model.errors import StoreUnavailable
from tenure.periodic import backoff
from tenure.store import jobs
from tenure.store.jobs import EnqueuedRow
from tenure.store.link import Link


async def enqueue_bulk(link: Link, chunks: Iterator[str], within: float) -> ExistingJobs:
    """Each chunk is a JSON array of jobs. All of them, or none. `chunks` is drawn from while the transaction is open.

    `within` counts from the first failure: a million jobs may take their time, an outage may not.
    """
    sent: list[str] = []
    failures, away_since = 0, 0.0
    while True:
        try:
            return existing_in(await _write(link, sent, chunks, again=failures > 0))
        except StoreUnavailable as error:
            failures += 1
            away_since = away_since or time.monotonic()
            pause = backoff(failures)
            if time.monotonic() + pause - away_since > within:
                raise out_of_time(within, error) from error
            await asyncio.sleep(pause)


async def _write(link: Link, sent: list[str], chunks: Iterator[str], *, again: bool) -> list[EnqueuedRow]:
    rows: list[EnqueuedRow] = []
    async with link.transaction() as run:
        for text in sent:
            rows += await run(jobs.enqueue(text, again=again))
        writing: asyncio.Future[Any] | None = None
        try:
            for text in chunks:  # made here, while PostgreSQL works on the one before
                # Kept to the end: whether an unanswered COMMIT happened is found out by sending the same ids again.
                sent.append(text)
                if writing is not None:
                    rows += await writing
                writing = asyncio.ensure_future(run(jobs.enqueue(text)))
                await asyncio.sleep(0)
        finally:
            if writing is not None:
                rows += await writing
    return rows
