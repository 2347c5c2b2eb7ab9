"""Layers around a handler, outermost first. What Tenure itself puts around it comes through the same door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tenure.model.current import current_run
from tenure.model.kinds import Middleware
from tenure.worker.run.context import Context

Call = Callable[[Context], Awaitable[Any]]


class CallNext:
    """What a middleware awaits for the result: the next layer, or the handler."""

    __slots__ = ("_ctx", "_inner")

    def __init__(self, inner: Call, ctx: Context) -> None:
        self._inner = inner
        self._ctx = ctx

    def __call__(self, ctx: Context | None = None) -> Awaitable[Any]:
        return self._inner(ctx or self._ctx)


def compose(layers: Iterable[Middleware], handler: Call) -> Call:
    call = handler
    for layer in reversed(list(layers)):
        call = _around(layer, call)
    return call


def _around(layer: Middleware, inner: Call) -> Call:
    def call(ctx: Context) -> Awaitable[Any]:
        return layer(ctx, CallNext(inner, ctx))

    return call


async def attend(ctx: Context, call_next: CallNext) -> Any:
    """Log records and jobs handed in by the handler know whose run they belong to; and a run that exceeds its time is
    aborted, by the watch, which looks at all deadlines twice a second. One layer for both: it is around every job."""
    run = ctx._run  # noqa: SLF001
    current_run.set(run)
    limit = run.time_limit
    run.deadline = None if limit is None else run.started + limit
    return await call_next()


BUILT_IN: tuple[Middleware, ...] = (attend,)
