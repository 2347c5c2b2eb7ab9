"""How a handler learns that its run was aborted."""

from __future__ import annotations

import asyncio
import threading
from typing import Literal

from tenure.model.errors import TenureError

AbortReason = Literal["taken_by_another_worker", "already_completed", "not_found", "canceled", "timeout", "shutdown", "error"]


class Aborted(TenureError):  # noqa: N818 - reads as the fact it states
    """Raised by `ctx.signal.check()` when the run is over."""

    def __init__(self, reason: AbortReason) -> None:
        self.reason = reason
        super().__init__(f"this run is over: {reason}")


class Signal:
    """Safe to read from any thread. A coroutine is cancelled as well; a thread has only this."""

    __slots__ = ("_asyncio_waiters", "_lock", "_thread_event", "reason")

    def __init__(self) -> None:
        self.reason: AbortReason | None = None
        self._lock = threading.Lock()
        self._thread_event: threading.Event | None = None
        self._asyncio_waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def aborted(self) -> bool:
        return self.reason is not None

    def check(self) -> None:
        """Raises `Aborted` when the run is over; for loops in threads."""
        if self.reason is not None:
            raise Aborted(self.reason)

    async def wait(self) -> AbortReason:
        event = asyncio.Event()
        with self._lock:
            if self.reason is not None:
                return self.reason
            self._asyncio_waiters.append((asyncio.get_running_loop(), event))
        await event.wait()
        assert self.reason is not None
        return self.reason

    def wait_sync(self, timeout: float | None = None) -> AbortReason | None:
        """Waits in a thread; None when the time is up and the run continues."""
        with self._lock:
            if self._thread_event is None:
                self._thread_event = threading.Event()
                if self.reason is not None:
                    self._thread_event.set()
        self._thread_event.wait(timeout)
        return self.reason

    def abort(self, reason: AbortReason) -> None:
        """Only the first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            if self._thread_event is not None:
                self._thread_event.set()
            for loop, event in self._asyncio_waiters:
                loop.call_soon_threadsafe(event.set)
