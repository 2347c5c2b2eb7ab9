"""Middleware around a handler, outermost first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tenure.model.kinds import Middleware
from tenure.worker.run.context import Context

CallHandler = Callable[[Context], Awaitable[Any]]


class CallNext:
    """What a middleware awaits for the result: the next layer, or the handler."""

    __slots__ = ("_ctx", "_inner")

    def __init__(self, inner: CallHandler, ctx: Context) -> None:
        self._inner = inner
        self._ctx = ctx

    def __call__(self, ctx: Context | None = None) -> Awaitable[Any]:
        return self._inner(ctx or self._ctx)


def compose(layers: Iterable[Middleware], handler: CallHandler) -> CallHandler:
    call = handler
    for layer in reversed(list(layers)):
        call = _around(layer, call)
    return call


def _around(layer: Middleware, inner: CallHandler) -> CallHandler:
    def call(ctx: Context) -> Awaitable[Any]:
        return layer(ctx, CallNext(inner, ctx))

    return call
