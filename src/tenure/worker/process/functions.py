"""Functions that another process calls for a step: how it finds them, and how arguments and results are sent."""

from __future__ import annotations

import asyncio
import base64
import inspect
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from tenure.model.errors import ConfigError
from tenure.worker.process.messages import CallFunction


def call_message(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> CallFunction:
    """Raises `ConfigError` for a function that another process cannot find, or arguments that cannot be sent to it."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", "<")
    if module is None or "<" in name:
        raise ConfigError(f"{fn!r:.100} cannot be found by another process: define it with `def` at the top level of a module")
    main = getattr(sys.modules.get("__main__"), "__file__", None) if module == "__main__" else None
    return CallFunction(module, main, name, packed_value((tuple(args), dict(kwargs)), f"the arguments of {name}"))


def packed_value(value: Any, what: str) -> str:
    try:
        return base64.b64encode(pickle.dumps(value)).decode()
    except Exception as error:  # pickle raises many things
        raise ConfigError(f"{what} cannot be sent to another process: {error}") from error


def unpacked_value(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - from a process that this one started, or that started it


def called(given: CallFunction, names: Mapping[str, Any]) -> str:
    """Calls the function. `names` are those of its module. Returns its result, packed."""
    first, *more = given.name.split(".")
    fn = inspect.unwrap(reduce(getattr, more, names[first]))  # `@app.step` wraps it
    args, kwargs = unpacked_value(given.arguments)
    result = fn(*args, **kwargs)
    return packed_value(asyncio.run(result) if inspect.iscoroutine(result) else result, f"the result of {given.name}")
