"""Runs the event loop of Tenure's processes: uvloop if it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tenure import stop_requests

Result = TypeVar("Result")


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=_fastest()) as runner:
        return runner.run(work)


def run_until_stopped(work: Coroutine[Any, Any, Result]) -> Result:
    """For work before the supervisor runs: SIGTERM or SIGINT cancels it and raises SystemExit(0)."""

    async def cancellable() -> Result:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        stop_requests.swap_reaction(lambda: _cancel_soon(loop, task))
        if stop_requests.was_asked():
            task.cancel()
        try:
            return await task
        finally:
            stop_requests.swap_reaction(stop_requests.note)

    before = stop_requests.swap_reaction(stop_requests.note)
    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if not stop_requests.was_asked():
            raise
        raise SystemExit(0) from None
    finally:
        stop_requests.swap_reaction(before)


def _cancel_soon(loop: asyncio.AbstractEventLoop, task: asyncio.Future[Any]) -> None:
    loop.call_soon_threadsafe(task.cancel)


def _fastest() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make
