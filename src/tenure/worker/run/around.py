"""Context managers around a handler, entered exactly where it runs: in its thread, in its task, in its own process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from tenure.model.kinds import AroundCoroutine, AroundThread
from tenure.worker.run.context import Context


def call_within(hooks: Iterable[AroundThread], ctx: Context, call: Callable[[], Any]) -> Any:
    """The first hook is the outermost. A hook can fail the job, but not turn a failure into a success: middleware can."""
    with ExitStack() as stack:
        for hook in hooks:
            stack.enter_context(hook(ctx))
        try:
            return call()
        except BaseException as error:
            failed = error
            raise
    raise failed  # a hook has suppressed it


async def await_within(hooks: Iterable[AroundCoroutine], ctx: Context, call: Callable[[], Awaitable[Any]]) -> Any:
    async with AsyncExitStack() as stack:
        for hook in hooks:
            await stack.enter_async_context(hook(ctx))
        try:
            return await call()
        except BaseException as error:
            failed = error
            raise
    raise failed
