"""Provides handlers with values, and closes what was opened for them when they have ended."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

from tenure.model.dependencies import Provider
from tenure.model.errors import ConfigError
from tenure.worker.run.context import Context

Overrides = Mapping[Callable[..., Any], Callable[..., Any]]
"""What tests put in the place of functions that provide values."""


async def provide(stack: AsyncExitStack, ctx: Context, providers: Mapping[str, Provider], overrides: Overrides) -> dict[str, Any]:
    """The values by parameter. What they opened is closed with the stack, the last first; an error of the handler is raised in
    each generator, as in a context manager."""
    made: dict[Callable[..., Any], Any] = {}

    async def value(provider: Provider) -> Any:
        if provider.use_cache and provider.fn in made:
            return made[provider.fn]
        arguments = {name: await value(needed) for name, needed in provider.needs.items()}
        result = await _opened(stack, *_substituted(provider, arguments, ctx, overrides))
        made[provider.fn] = result
        return result

    return {name: await value(provider) for name, provider in providers.items()}


def provide_sync(stack: ExitStack, ctx: Context, providers: Mapping[str, Provider], overrides: Overrides) -> dict[str, Any]:
    """The same for plain handlers, in their thread."""
    made: dict[Callable[..., Any], Any] = {}

    def value(provider: Provider) -> Any:
        if provider.use_cache and provider.fn in made:
            return made[provider.fn]
        arguments = {name: value(needed) for name, needed in provider.needs.items()}
        result = _opened_sync(stack, *_substituted(provider, arguments, ctx, overrides))
        made[provider.fn] = result
        return result

    return {name: value(provider) for name, provider in providers.items()}


def _substituted(
    provider: Provider, arguments: dict[str, Any], ctx: Context, overrides: Overrides
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function to call and its arguments. A substitute takes none."""
    if (substitute := overrides.get(provider.fn)) is not None:
        return substitute, {}
    if provider.context is not None:
        arguments[provider.context] = ctx
    return provider.fn, arguments


async def _opened(stack: AsyncExitStack, fn: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.isasyncgenfunction(fn):
        return await stack.enter_async_context(asynccontextmanager(fn)(**arguments))
    if inspect.isgeneratorfunction(fn):
        return stack.enter_context(contextmanager(fn)(**arguments))
    result = fn(**arguments)
    return await result if inspect.isawaitable(result) else result


def _opened_sync(stack: ExitStack, fn: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.isgeneratorfunction(fn):
        return stack.enter_context(contextmanager(fn)(**arguments))
    result = fn(**arguments)
    if inspect.isawaitable(result) or inspect.isasyncgen(result):
        raise ConfigError(
            f"{fn!r} is asynchronous, but the handler is a plain function: use a plain one, or an `async def` handler"
        )
    return result
