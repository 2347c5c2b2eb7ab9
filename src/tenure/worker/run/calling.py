"""Calls handlers where their kind runs: on the loop, in a thread, in a process."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure.lifeline import exit_if_forked, forks
from tenure.model.current import current_run
from tenure.model.errors import ConfigError
from tenure.model.kinds import AroundCoroutine, AroundThread, Kind, Registry
from tenure.worker.run import settlement as settlements
from tenure.worker.run.around import await_within, call_within
from tenure.worker.run.context import Context
from tenure.worker.run.dependencies import Overrides, provide, provide_sync
from tenure.worker.run.middleware import CallHandler, compose
from tenure.worker.run.transactions import settle_open_sync, take, undo, undo_sync

if TYPE_CHECKING:
    from tenure.worker.process.pool import ProcessPool

ABORT_PATIENCE = 2.0
"""Seconds that an aborted handler has for its clean-up. Then a process is killed, and a coroutine or thread is abandoned."""


class Caller:
    def __init__(self, kinds: Registry, threads: Executor, process_pool: ProcessPool) -> None:
        self._kinds = kinds
        self._threads = threads
        self._process_pool = process_pool
        self._chains: dict[str, CallHandler] = {}

    def call(self, ctx: Context) -> Any:
        """The whole chain for a run: middleware, then the handler. Log records and jobs that it enqueues belong to the run, and
        the monitor aborts a run that exceeds its time limit."""
        run = ctx._run  # noqa: SLF001
        kind, limit = run.kind, run.time_limit
        current_run.set(run)
        run.deadline = None if limit is None else run.started + limit
        chain = self._chains.get(kind.name)
        if chain is None:
            on_this_loop = partial(on_loop, self._kinds)
            handlers: dict[str, CallHandler] = {"loop": on_this_loop, "thread": self._in_thread, "process": self._in_process}
            middleware = () if kind.builtin else (*self._kinds.middleware, *kind.middleware)
            chain = self._chains[kind.name] = compose(middleware, handlers[kind.run_in])
        return chain(ctx)

    async def _in_thread(self, ctx: Context) -> Any:
        run = ctx._run  # noqa: SLF001
        inside = contextvars.copy_context()
        run.thread = self._threads.submit(inside.run, in_thread, ctx, self._kinds)
        waiting = asyncio.wrap_future(run.thread)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # Its signal was set: it may still end in time.
            await asyncio.wait([waiting], timeout=ABORT_PATIENCE)
            if waiting.done():
                return await waiting
            raise

    async def _in_process(self, ctx: Context) -> Any:
        return await self._process_pool.run(ctx)


def arguments_of(kind: Kind, ctx: Context) -> dict[str, Any]:
    arguments = kind.input.decode(ctx._run.job.input)  # noqa: SLF001
    if kind.signature.context is not None:
        arguments[kind.signature.context] = ctx
    return arguments


async def on_loop(kinds: Registry, ctx: Context) -> Any:
    """Calls a coroutine handler. When it fails, what it wrote in its transaction is undone at once."""
    hooks: Sequence[AroundCoroutine] = () if ctx._run.kind.builtin else kinds.around_coroutine  # noqa: SLF001
    try:
        if hooks or ctx._run.kind.atomic or ctx._run.kind.signature.provided:  # noqa: SLF001
            return await await_within(hooks, ctx, partial(_awaited, ctx, kinds.overrides))
        # As `_awaited`, without a coroutine more: the most common case.
        kind = ctx._run.kind  # noqa: SLF001
        forked = forks()
        try:
            return ctx._result_of(await kind.fn(**arguments_of(kind, ctx)))  # noqa: SLF001
        finally:
            exit_if_forked(forked)
    except BaseException as error:
        await undo(ctx._run, error)  # noqa: SLF001
        raise


async def _awaited(ctx: Context, overrides: Overrides) -> Any:
    kind = ctx._run.kind  # noqa: SLF001
    arguments = arguments_of(kind, ctx)
    forked = forks()
    try:
        async with AsyncExitStack() as stack:
            if kind.atomic:
                await stack.enter_async_context(ctx.transaction())
            arguments |= await provide(stack, ctx, kind.signature.provided, overrides)
            try:
                return ctx._result_of(await kind.fn(**arguments))  # noqa: SLF001
            except BaseException as error:
                failed = error
                raise
        raise failed  # what provides a value has suppressed it
    finally:
        exit_if_forked(forked)


def in_thread(ctx: Context, kinds: Registry) -> Any:
    run = ctx._run  # noqa: SLF001
    try:
        return _carried(partial(call_plain, ctx, kinds))
    finally:
        # The loop does not wait for this thread any more, so only this thread can end its transaction.
        if run.settled and (transaction := take(run)) is not None:
            transaction.rollback_sync()


def call_plain(ctx: Context, kinds: Registry) -> Any:
    """Calls a plain handler. When it fails, what it wrote in its transaction is undone at once."""
    hooks: Iterable[AroundThread] = kinds.around_thread
    try:
        return call_within(hooks, ctx, partial(_called, ctx, kinds.overrides))
    except BaseException as error:
        undo_sync(ctx._run, error)  # noqa: SLF001
        raise


def _called(ctx: Context, overrides: Overrides) -> Any:
    run = ctx._run  # noqa: SLF001
    arguments = arguments_of(run.kind, ctx)
    provided = run.kind.signature.provided
    if run.kind.atomic:
        with ctx.transaction():
            return _call_provided(ctx, arguments, overrides) if provided else _call_handler(ctx, arguments)
    result = _call_provided(ctx, arguments, overrides) if provided else _call_handler(ctx, arguments)
    if run.transaction is not None and run.transaction.thread_bound:
        # No other thread may commit it, and the hooks around the handler may close its connection.
        settle_open_sync(run, ctx._services, lambda: settlements.of_result(run, result))  # noqa: SLF001
    return result


def _call_provided(ctx: Context, arguments: dict[str, Any], overrides: Overrides) -> Any:
    with ExitStack() as stack:
        arguments |= provide_sync(stack, ctx, ctx._run.kind.signature.provided, overrides)  # noqa: SLF001
        try:
            return _call_handler(ctx, arguments)
        except BaseException as error:
            failed = error
            raise
    raise failed  # what provides a value has suppressed it


def _call_handler(ctx: Context, arguments: dict[str, Any]) -> Any:
    forked, kind = forks(), ctx._run.kind  # noqa: SLF001
    try:
        returned = kind.fn(**arguments)
    finally:
        exit_if_forked(forked)
    if inspect.iscoroutine(returned):
        returned.close()
        raise ConfigError(f"job {kind.name!r} is a plain function that returned a coroutine, which is never run: use `async def`")
    return ctx._result_of(returned)  # noqa: SLF001


def _carried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error  # no future can carry it
