"""The thread that checks large arguments. There is one for all: what it computes slows the event loop down, and more of them
would stop it. A check may take seconds, so those of each caller are done one after the other, in turn with those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

from tenure.web.problems import Problem
from tenure.web.security.rate_limits import too_many

T = TypeVar("T")

MOST_WAITING = 20
"""Checks of one caller that have not ended."""

ANSWERED_WITHIN = 25.0
"""Seconds for a check, with the time that it waits for others: less than a request may take."""

caller: ContextVar[str] = ContextVar("caller", default="")
"""For whom a request is answered: the account of its principal."""


class Turns:
    """Those of one caller in one event loop."""

    def __init__(self) -> None:
        self.waiting = 0
        self.lock = asyncio.Lock()


class CheckThread:
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "tenure-check")
        self._turns: dict[tuple[asyncio.AbstractEventLoop, str], Turns] = {}

    async def run(self, check: Callable[[], T], within: float) -> T:
        """Raises a problem if too many checks of the caller wait, or this one for too long. `within`: the seconds that a check
        may take."""
        loop = asyncio.get_running_loop()
        key = loop, caller.get()
        turns = self._turns.setdefault(key, Turns())
        if turns.waiting >= MOST_WAITING:
            raise _too_many(within)
        turns.waiting += 1
        try:
            async with asyncio.timeout(ANSWERED_WITHIN), turns.lock:
                return await loop.run_in_executor(self._executor, check)
        except TimeoutError:
            raise _too_many(within) from None
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                del self._turns[key]


def _too_many(within: float) -> Problem:
    return too_many("other arguments that you have sent wait to be checked", within)
