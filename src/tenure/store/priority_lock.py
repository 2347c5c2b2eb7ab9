"""A lock that urgent tasks get before others that wait for it."""

from __future__ import annotations

import asyncio
from collections import deque


class PriorityLock:
    """For the tasks of one event loop. First come, first served within each of the two classes."""

    def __init__(self) -> None:
        self._locked = False
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    async def acquire(self, *, urgent: bool = False) -> None:
        if not self._locked:
            self._locked = True
            return
        waiter = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._others).append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self.release()  # the lock was passed on to this task before it was canceled
            else:
                waiter.cancel()
            raise

    def release(self) -> None:
        """Passes the lock on without unlocking it, so that no other task can take it in between."""
        for waiters in (self._urgent, self._others):
            while waiters:
                waiter = waiters.popleft()
                if not waiter.done():
                    waiter.set_result(None)
                    return
        self._locked = False
