"""Values that a handler gets from functions: `session: Annotated[Session, Provide(get_session)]`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from tenure.model.errors import ConfigError

provided: Any = ...
"""The default of a parameter that is provided: `session: Annotated[Session, Provide(get_session)] = provided`. With it, type
checkers know that `enqueue` does not take the parameter."""

Mode = Literal["value", "coroutine", "generator", "async_generator"]


@dataclass(frozen=True, slots=True)
class Provide:
    """Marks a parameter that is not part of the job's input: its value is what `dependency()` returns or yields.

    A generator is closed when the handler has ended. `use_cache=False` calls it for each parameter, not once for each run.
    """

    dependency: Callable[..., Any]
    use_cache: bool = True


@dataclass(frozen=True, slots=True)
class Provider:
    """A function that provides a value, and what its own parameters need."""

    fn: Callable[..., Any]
    mode: Mode
    needs: Mapping[str, Provider]
    """By the names of its parameters."""
    context: str | None
    """The name of the parameter that takes the context."""
    use_cache: bool

    @property
    def is_async(self) -> bool:
        """It can only be used by a coroutine handler."""
        return self.mode in ("coroutine", "async_generator") or any(one.is_async for one in self.needs.values())


def marker_of(annotation: Any) -> Provide | None:
    """What provides the parameter, if something does. `fastapi.Depends` is understood as well."""
    if get_origin(annotation) is not Annotated:
        return None
    type_, *marks = get_args(annotation)
    for mark in marks:
        if isinstance(mark, Provide):
            return mark
        if type(mark).__name__ == "Depends" and type(mark).__module__.partition(".")[0] == "fastapi":
            return Provide(mark.dependency or type_, use_cache=mark.use_cache)
    return None


Resolve = Callable[[Callable[..., Any]], dict[str, Any]]
"""From a function to its resolved annotations, by parameter."""


def provider_of(
    marker: Provide, resolve: Resolve, takes_context: Callable[[Any], bool], chain: tuple[Callable[..., Any], ...] = ()
) -> Provider:
    """Reads the function's own parameters. Raises `ConfigError` for one that nothing provides."""
    fn = marker.dependency
    if not callable(fn):
        raise ConfigError(f"Provide({fn!r}): give a function that returns or yields the value")
    if fn in chain:
        raise ConfigError(f"Provide({_name(fn)}): it depends on itself, over {', '.join(_name(one) for one in chain)}")
    needs: dict[str, Provider] = {}
    context = None
    for name, annotation in resolve(fn).items():
        if (inner := marker_of(annotation)) is not None:
            needs[name] = provider_of(inner, resolve, takes_context, (*chain, fn))
        elif takes_context(annotation):
            context = name
        elif inspect.signature(fn).parameters[name].default is inspect.Parameter.empty:
            raise ConfigError(
                f"Provide({_name(fn)}): nothing provides its parameter {name!r}: annotate it with Annotated[..., Provide(...)] "
                "or Context, or give it a default"
            )
    return Provider(fn, _mode(fn), needs, context, marker.use_cache)


def _mode(fn: Callable[..., Any]) -> Mode:
    if inspect.isasyncgenfunction(fn):
        return "async_generator"
    if inspect.isgeneratorfunction(fn):
        return "generator"
    return "coroutine" if inspect.iscoroutinefunction(fn) else "value"


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", repr(fn))
