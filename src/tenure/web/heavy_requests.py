"""Requests that use much memory or time are answered a few at a time. A body that is read can use fifty times its size, and to
check arguments can take seconds. Those of one caller are answered one after the other, in turn with those of others. Until its
turn, a body is kept as it arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

from tenure.web.problems import Problem
from tenure.web.security.rate_limits import too_many

T = TypeVar("T")

LARGE = 64 * 1024
"""Bytes. Smaller bodies do not wait."""

AT_ONCE = 4
"""Requests of different callers that are answered at the same time in one event loop."""

MOST_KEPT = 20 * 1024 * 1024
"""Bytes of the large bodies of one caller that are not answered, also of those that have not arrived yet."""

CHECKED = 1024 * 1024
"""Bytes that a small body counts for while a slow check of it waits: it has been read already."""

TURN_WITHIN = 20.0
"""Seconds for a turn to come, and for a check with its turn. The rest of the time for a request is for PostgreSQL."""

RETRY_AFTER = 5.0  # seconds

_thread = ThreadPoolExecutor(1, "tenure-check")
"""One for all: what it computes slows the event loop down, and more of them would stop it."""


class Line:
    """The requests of one caller."""

    def __init__(self) -> None:
        self.kept = 0
        self.lock = asyncio.Lock()


class HeavyRequests:
    """Of one event loop."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE)
        self.lines: dict[str, Line] = {}


class Turn:
    """Of one request. Most end without having taken theirs."""

    __slots__ = ("_caller", "_held", "_kept", "_requests")

    def __init__(self, requests: HeavyRequests, caller: str) -> None:
        self._requests = requests
        self._caller = caller
        self._kept = 0
        self._held: tuple[asyncio.Lock | asyncio.Semaphore, ...] = ()

    def keep(self, size: int) -> None:
        """Counts a body of this size. Raises a problem if the caller has too many."""
        line = self._requests.lines.get(self._caller)
        if size > self._kept and (0 if line is None else line.kept) + size - self._kept > MOST_KEPT:
            raise _too_many()
        if line is None:
            line = self._requests.lines[self._caller] = Line()
        line.kept += size - self._kept
        self._kept = size

    async def take(self, size: int) -> None:
        """Waits for the turn, which lasts until the request is answered. Raises a problem if it does not come in time."""
        if self._held:
            return
        self.keep(size)
        try:
            async with asyncio.timeout(TURN_WITHIN):
                for one in (self._requests.lines[self._caller].lock, self._requests.free):
                    await one.acquire()
                    self._held = (*self._held, one)
        except TimeoutError:
            raise _too_many() from None

    async def run(self, check: Callable[[], T]) -> T:
        """In the thread, when it is the turn of the request."""
        try:
            async with asyncio.timeout(TURN_WITHIN):
                await self.take(CHECKED)
                return await asyncio.get_running_loop().run_in_executor(_thread, check)
        except TimeoutError:
            raise _too_many() from None

    def end(self) -> None:
        for one in self._held:
            one.release()
        self._held = ()
        if self._kept:
            line = self._requests.lines[self._caller]
            line.kept -= self._kept
            self._kept = 0
            if not line.kept:
                del self._requests.lines[self._caller]


current: ContextVar[Turn] = ContextVar("turn")
"""Of the request that is answered, if it changes something."""


def _too_many() -> Problem:
    return too_many("other requests that you have sent, with large bodies or slow checks, wait for their answers", RETRY_AFTER)
