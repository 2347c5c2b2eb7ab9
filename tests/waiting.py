"""Waiting for facts instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

MISSING = object()


async def until(look: Callable[[], Any], *, is_: Any = MISSING, within: float = 20.0) -> Any:
    """Looks until the answer is true (or equals `is_`), and gives it. Fails with the last answer when the time is up."""
    deadline = time.monotonic() + within
    while True:
        seen = look()
        if inspect.isawaitable(seen):
            seen = await seen
        if seen if is_ is MISSING else seen == is_:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: last seen {seen!r}" + ("" if is_ is MISSING else f", wanted {is_!r}"))
        await asyncio.sleep(0.02)
