"""Reads survive a broken connection as enqueues do: they are repeated until PostgreSQL is back or their time is over."""

from __future__ import annotations

import asyncio
import math
import time

from tenure.model.errors import StoreUnavailable
from tenure.periodic import backoff
from tenure.store.query import Fetch, Query, T

SHORTEST_TRY = 1.0
"""Seconds that each try gets at least: a caller with little time left still wants an answer from a server that is well."""


def repeated(fetch: Fetch, within: float, *, long: bool = False) -> Fetch:
    """The same for statements that may run twice. Raises `StoreUnavailable` once `within` seconds, over all its calls, are over;
    a `long` one that is being answered may take its time."""
    deadline = time.monotonic() + within

    async def read(query: Query[T]) -> list[T]:
        failures = 0
        while True:
            try:
                return await (fetch(query) if long else _try(fetch, query, deadline))
            except StoreUnavailable:
                failures += 1
                pause = backoff(failures)
                if time.monotonic() + pause > deadline:
                    raise
                await asyncio.sleep(pause)

    return read


async def _try(fetch: Fetch, query: Query[T], deadline: float) -> list[T]:
    if math.isinf(deadline):
        return await fetch(query)
    patience = max(SHORTEST_TRY, deadline - time.monotonic())
    try:
        async with asyncio.timeout(patience):
            return await fetch(query)
    except TimeoutError:
        raise StoreUnavailable(f"PostgreSQL did not answer within {patience:g} s") from None
