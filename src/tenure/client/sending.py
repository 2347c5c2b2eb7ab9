"""The entry of every enqueue: the hooks of `@app.around_enqueue` around it, outermost first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

from tenure.client.calls import Call
from tenure.client.enqueue import enqueue_call, enqueue_call_sync, enqueue_many, enqueue_many_sync
from tenure.client.handle import Handle
from tenure.client.options import Options
from tenure.client.runtime import ClientRuntime
from tenure.model.errors import ConfigError

R = TypeVar("R")

AroundEnqueue = Callable[[Sequence[Call[Any]]], AbstractContextManager[Sequence[Call[Any]]]]
"""Gets the calls of one enqueue, and gives those that are written: as many, in the same order."""


async def send_call(runtime: ClientRuntime, options: Options, call: Call[R]) -> Handle[R]:
    if not runtime.around_enqueue:
        return await enqueue_call(runtime, options, call)
    with within_hooks(runtime, [call]) as calls:
        return await enqueue_call(runtime, options, calls[0])


def send_call_sync(runtime: ClientRuntime, options: Options, call: Call[R]) -> Handle[R]:
    if not runtime.around_enqueue:
        return enqueue_call_sync(runtime, options, call)
    with within_hooks(runtime, [call]) as calls:
        return enqueue_call_sync(runtime, options, calls[0])


async def send_many(runtime: ClientRuntime, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    if not runtime.around_enqueue:
        return await enqueue_many(runtime, calls, options)
    with within_hooks(runtime, calls) as final:
        return await enqueue_many(runtime, final, options)


def send_many_sync(runtime: ClientRuntime, calls: Iterable[Call[Any]], options: Options) -> list[Handle[Any]]:
    if not runtime.around_enqueue:
        return enqueue_many_sync(runtime, calls, options)
    with within_hooks(runtime, calls) as final:
        return enqueue_many_sync(runtime, final, options)


@contextmanager
def within_hooks(runtime: ClientRuntime, given: Iterable[Call[Any]]) -> Iterator[Sequence[Call[Any]]]:
    calls: Sequence[Call[Any]] = given if isinstance(given, Call) else list(given)
    if isinstance(calls, Call) or not all(isinstance(call, Call) for call in calls):
        yield calls  # refused by the enqueue itself, with its own message
        return
    with ExitStack() as stack:
        for hook in runtime.around_enqueue:
            changed = stack.enter_context(hook(calls))
            if [call.id for call in changed] != [call.id for call in calls]:
                raise ConfigError(
                    "a hook of around_enqueue() gave other calls: yield the same calls, changed by with_headers() or with_meta()"
                )
            calls = changed
        yield calls
