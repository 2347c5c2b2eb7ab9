"""Calls handlers where their kind wants to be run: on the loop, in a thread, in a process."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure.model.kinds import Kind, Registry
from tenure.worker.context import Context
from tenure.worker.middleware import BUILT_IN, Call, compose
from tenure.worker.transactions import take

if TYPE_CHECKING:
    from tenure.worker.cells import Cells

ABORT_PATIENCE = 2.0
"""Seconds that an aborted handler has for its clean-up. Then a process is killed, a coroutine or thread left to itself."""


class Caller:
    def __init__(self, kinds: Registry, threads: Executor, cells: Cells) -> None:
        self._kinds = kinds
        self._threads = threads
        self._cells = cells
        self._chains: dict[str, Call] = {}

    def call(self, ctx: Context) -> Any:
        """The whole chain for a run: middleware, then the handler."""
        kind = ctx._run.kind  # noqa: SLF001
        chain = self._chains.get(kind.name)
        if chain is None:
            handler: Call = {"loop": on_loop, "thread": self._in_thread, "process": self._in_process}[kind.run_in]
            chain = self._chains[kind.name] = compose((*BUILT_IN, *self._kinds.middleware, *kind.middleware), handler)
        return chain(ctx)

    async def _in_thread(self, ctx: Context) -> Any:
        run = ctx._run  # noqa: SLF001
        inside = contextvars.copy_context()
        run.thread = self._threads.submit(inside.run, in_thread, ctx)
        waiting = asyncio.wrap_future(run.thread)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # Told by its signal: it may still end in order.
            await asyncio.wait([waiting], timeout=ABORT_PATIENCE)
            if waiting.done():
                return await waiting
            raise

    async def _in_process(self, ctx: Context) -> Any:
        return await self._cells.run(ctx)


def arguments_of(kind: Kind, ctx: Context) -> dict[str, Any]:
    arguments = kind.input.decode(ctx._run.input)  # noqa: SLF001
    if kind.signature.context is not None:
        arguments[kind.signature.context] = ctx
    return arguments


async def on_loop(ctx: Context) -> Any:
    kind = ctx._run.kind  # noqa: SLF001
    arguments = arguments_of(kind, ctx)
    if kind.atomic:
        async with ctx.transaction():
            return await kind.fn(**arguments)
    return await kind.fn(**arguments)


def in_thread(ctx: Context) -> Any:
    run = ctx._run  # noqa: SLF001
    try:
        return _carried(partial(call_plain, ctx))
    finally:
        # Nobody waits for this thread any more, so nobody else ends its transaction.
        if run.settled and (transaction := take(run)) is not None:
            transaction.rollback_sync()


def call_plain(ctx: Context) -> Any:
    kind = ctx._run.kind  # noqa: SLF001
    arguments = arguments_of(kind, ctx)
    if kind.atomic:
        with ctx.transaction():
            return kind.fn(**arguments)
    return kind.fn(**arguments)


def _carried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error  # no future can carry it
