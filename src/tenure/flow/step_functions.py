"""The functions that steps call: how their results become JSON and typed values again, and where they run."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, get_type_hints
from weakref import WeakKeyDictionary

from tenure.model.codec import OutputCodec
from tenure.model.errors import ConfigError
from tenure.model.kinds import RunIn
from tenure.model.options import one_of
from tenure.model.payloads import Json, as_stored

PLAIN = (str, int, bool, type(None))
"""Values that JSON carries as they are."""


@dataclass(frozen=True, slots=True)
class StepFunction:
    fn: Callable[..., Any]
    codec: OutputCodec
    is_async: bool

    def encode(self, value: Any) -> Json:
        return self.codec.encode(value).decode()

    def same(self, value: Any, text: Json) -> Any:
        """The value as a later run will get it, so that the first one sees no other."""
        return value if type(value) in PLAIN else self.codec.decode(as_stored(text))

    def decode(self, text: Json | None) -> Any:
        return self.codec.decode("null" if text is None else text)

    async def run(self, call: StepCall, threads: Executor) -> Any:
        """A coroutine function runs on the loop, a plain one in a thread."""
        token = inside_step.set(True)
        try:
            if self.is_async:
                return await self.fn(*call.args, **call.kwargs)
            inside = functools.partial(contextvars.copy_context().run, self.fn, *call.args, **call.kwargs)
            returned = await asyncio.get_running_loop().run_in_executor(threads, inside)
            if inspect.isawaitable(returned):  # a lambda or a partial around a coroutine function
                return await returned
            return returned
        finally:
            inside_step.reset(token)


class StepCall(NamedTuple):
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = MappingProxyType({})


inside_step: ContextVar[bool] = ContextVar("inside_step", default=False)
"""The current code belongs to a step."""

_known: WeakKeyDictionary[Any, StepFunction] = WeakKeyDictionary()


def step_function(fn: Callable[..., Any], name: str) -> StepFunction:
    """Read from the function once."""
    if not callable(fn):
        raise ConfigError(f"step {name!r}: {fn!r} is not a function: write ctx.step({name!r}, function, *arguments)")
    try:
        known = _known.get(fn)
    except TypeError:  # cannot be referred to weakly
        return _read(fn)
    if known is None:
        known = _known[fn] = _read(fn)
    return known


def runs_in_process(run_in: RunIn | None, function: StepFunction, name: str) -> bool:
    """Raises `ConfigError` if the function cannot run there."""
    if run_in is None:
        return False
    one_of(run_in, RunIn, what=f"step {name!r}: run_in")
    if run_in == "process":
        if "<" in getattr(function.fn, "__qualname__", "<"):
            raise ConfigError(
                f"step {name!r}: another process cannot find its function: define it with `def` at the top level of a module"
            )
        return True
    if (run_in == "loop") != function.is_async:
        where = "on the event loop" if function.is_async else "in a thread"
        raise ConfigError(f"step {name!r} has run_in={run_in!r}, but its function can only run {where}, or in a process")
    return False


def _read(fn: Callable[..., Any]) -> StepFunction:
    inner = inspect.unwrap(fn)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    name = getattr(inner, "__qualname__", repr(inner))
    codec = OutputCodec.for_annotation(_returns(inner), kind=name)
    return StepFunction(fn, codec, inspect.iscoroutinefunction(inner))


def _returns(fn: Callable[..., Any]) -> Any:
    """Without an annotation, or with one that cannot be read here: plain JSON."""
    try:
        return get_type_hints(fn, include_extras=True).get("return", inspect.Signature.empty)
    except (NameError, TypeError, AttributeError):
        return inspect.Signature.empty
