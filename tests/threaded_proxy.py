"""A proxy in front of PostgreSQL, for code that blocks its own event loop, or has none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Self

from tenure.chaos.proxy import Proxy


class ThreadedProxy:
    """A proxy (`wire`) that is served by an event loop in a thread of its own."""

    def __init__(self, dsn: str) -> None:
        self.wire = Proxy(dsn)
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._serve()])

    async def _serve(self) -> None:
        async with self.wire.open():
            self._opened.set()
            await self._ended.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.speaks.set()
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def do(self, work: Callable[[Proxy], object]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (work(self.wire), done.set()))
        done.wait()
