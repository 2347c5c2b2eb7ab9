"""Waiting for facts instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Callable
from typing import Any

MISSING = object()

PATIENCE = float(os.environ.get("TENURE_TEST_PATIENCE", "60"))
"""Seconds. Long enough for a machine that runs several other things; a test that passes does not wait for it."""


async def until(look: Callable[[], Any], *, is_: Any = MISSING, within: float = PATIENCE) -> Any:
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
