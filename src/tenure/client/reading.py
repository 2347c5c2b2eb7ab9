"""Repeating reads and enqueues while PostgreSQL is away."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from tenure.model.errors import StoreUnavailable
from tenure.periodic import backoff
from tenure.store.query import Fetch, Query, T

SHORTEST_TRY = 1.0
"""Seconds that each try gets at least, so that a healthy server can answer a caller with little time left."""


async def repeat_while_away(send: Callable[[bool], Awaitable[T]], failed: Callable[[StoreUnavailable, float], None]) -> T:
    """Calls `send(again)` until PostgreSQL answers. `failed(error, pause)` is called before each pause; it raises to give up.

    After a failure it is not known whether the commit happened. `again` is true then; sending the same ids again is safe.
    """
    failures = 0
    while True:
        try:
            return await send(failures > 0)
        except StoreUnavailable as error:
            failures += 1
            pause = backoff(failures)
            failed(error, pause)
            await asyncio.sleep(pause)


def repeated(fetch: Fetch, within: float, *, long: bool = False) -> Fetch:
    """A fetch that repeats its statements, which must be safe to run twice. All its calls together have `within` seconds; then it
    raises `StoreUnavailable`. A `long` statement is not interrupted."""
    deadline = time.monotonic() + within

    def failed(error: StoreUnavailable, pause: float) -> None:
        if time.monotonic() + pause > deadline:
            raise error

    async def read(query: Query[T]) -> list[T]:
        return await repeat_while_away(lambda _: fetch(query) if long else _try(fetch, query, deadline), failed)

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
