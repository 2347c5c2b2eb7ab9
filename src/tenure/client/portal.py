"""The client for synchronous code: an event loop in a separate thread, started at first use."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tenure.model.errors import StoreUnavailable

Result = TypeVar("Result")
Self_ = TypeVar("Self_")
P = ParamSpec("P")


class Portal:
    """Runs coroutines for callers in any thread. A forked process gets its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owner = 0
        self._thread = threading.Thread()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            loop = self._open()
        except RuntimeError as error:
            work.close()
            raise _too_late(error) from error
        try:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        except RuntimeError as error:
            if "shutdown" in str(error):  # no threads can be started any more, and so no connections
                raise _too_late(error) from error
            raise

    def close(self) -> None:
        """Stops the loop in order, so that the last wake-ups are still sent. May be called twice."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._owner == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(timeout=2)

    def _open(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._owner != os.getpid():
                if not threading.main_thread().is_alive():  # nothing would stop a thread that is started in an exit handler
                    raise RuntimeError("no threads can be started")
                self._loop, self._owner = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=_serve, args=[self._loop], name="tenure client", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return self._loop


def _too_late(error: RuntimeError) -> StoreUnavailable:
    return StoreUnavailable(f"the interpreter is shutting down ({error}): only enqueue_sync() still works")


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()


def sync_version(method: Callable[Concatenate[Self_, P], Coroutine[Any, Any, Result]]) -> Callable[Concatenate[Self_, P], Result]:
    """The same method for code without an event loop. Its object has a `_runtime`."""

    @wraps(method)
    def run(self: Self_, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        portal: Portal = self._runtime.portal  # type: ignore[attr-defined]
        return portal.run(method(self, *args, **kwargs))

    return run
