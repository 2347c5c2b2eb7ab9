"""The parameters and the result of a handler, read once from the function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FrameType, UnionType
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from tenure.model.dependencies import Provider, marker_of, provider_of
from tenure.model.errors import ConfigError

_EMPTY = inspect.Parameter.empty
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Parameter:
    name: str
    annotation: Any
    """Resolved; `Any` without an annotation."""
    required: bool
    keyword_only: bool = False
    default: Any = None
    """Only valid if the parameter is not required."""
    annotated: bool = True
    """Whether the parameter has an annotation."""


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]
    """All but the context and what is provided."""
    context: str | None
    """The name of the parameter that takes the context. Pass it by this name, in any position."""
    is_async: bool
    returns: Any
    """Resolved; `Any` without an annotation, `NoneType` for `-> None`."""
    bindable: inspect.Signature
    """The signature that callers of `enqueue` see: without the context and what is provided."""
    provided: Mapping[str, Provider] = field(default_factory=dict)
    """By parameter: where its value comes from."""

    @classmethod
    def of(cls, fn: Callable[..., Any], *, context_type: type) -> Self:
        _check_is_function(fn)
        raw = _read(fn)
        _check_parameters(fn, raw)
        hints = _Hints(fn, context_type)
        resolved = {p.name: hints.resolve(p.name, p.annotation) for p in raw.parameters.values()}
        context = _context_among(resolved, fn, context_type)
        provided = _provided(fn, resolved, context_type)
        carried = [p for p in raw.parameters.values() if p.name != context and p.name not in provided]
        return cls(
            parameters=tuple(_parameter(p, resolved[p.name]) for p in carried),
            context=context,
            is_async=inspect.iscoroutinefunction(fn),
            returns=hints.resolve("return", raw.return_annotation),
            bindable=raw.replace(parameters=carried),
            provided=provided,
        )


def _parameter(raw: inspect.Parameter, annotation: Any) -> Parameter:
    required = raw.default is _EMPTY
    return Parameter(
        name=raw.name,
        annotation=annotation,
        required=required,
        keyword_only=raw.kind is inspect.Parameter.KEYWORD_ONLY,
        default=None if required else raw.default,
        annotated=raw.annotation is not _EMPTY,
    )


def _read(fn: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415 - new in Python 3.14

        # Annotations are lazy there: names that exist only for type checkers must not fail this early.
        return inspect.signature(fn, annotation_format=Format.FORWARDREF)
    return inspect.signature(fn)


def _check_is_function(fn: object) -> None:
    way_out = "write a function (`def` or `async def`) at module level that calls it"
    if isinstance(fn, partial):
        raise ConfigError(f"{fn!r} is a partial, which has no name to store: {way_out}")
    if inspect.ismethod(fn):
        raise ConfigError(f"{fn.__qualname__} is bound to an object that workers do not have: {way_out}")
    if not inspect.isfunction(fn):
        raise ConfigError(f"{fn!r} is not a function and cannot be a job: {way_out}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigError(f"{fn.__qualname__} is a generator, but a job returns once: use `return`, not `yield`")


def _check_parameters(fn: Callable[..., Any], raw: inspect.Signature) -> None:
    for position, parameter in enumerate(raw.parameters.values()):
        where = f"{fn.__qualname__}: parameter {str(parameter.replace(annotation=_EMPTY))!r}"
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise ConfigError(f"{where} is positional-only, but arguments are stored by name: remove the `/`")
        if parameter.kind not in _BY_NAME:
            raise ConfigError(
                f"{where} takes any arguments, but they are stored by name: spell them out, or take one list or dict"
            )
        if position == 0 and parameter.name in {"self", "cls"} and parameter.annotation is _EMPTY:
            raise ConfigError(f"{where} is an object that workers do not have: make the job a plain function")


def _context_among(resolved: dict[str, Any], fn: Callable[..., Any], context_type: type) -> str | None:
    names = [name for name, annotation in resolved.items() if _takes(annotation, context_type)]
    if not names and resolved.get("ctx") is Any and "ctx" not in getattr(fn, "__annotations__", {}):
        raise ConfigError(
            f"{fn.__qualname__}: parameter 'ctx' has no annotation, so it would be part of the job's input: write "
            f"`ctx: {context_type.__name__}`, as the first parameter, or give it another name"
        )
    if len(names) > 1:
        raise ConfigError(f"{fn.__qualname__}: parameters {' and '.join(names)} both take the context: keep one")
    return names[0] if names else None


def _provided(fn: Callable[..., Any], resolved: dict[str, Any], context_type: type) -> dict[str, Provider]:
    def resolve(dependency: Callable[..., Any]) -> dict[str, Any]:
        if not inspect.isfunction(dependency):  # a class or another callable: called without arguments
            return dict.fromkeys(inspect.signature(dependency).parameters, Any)
        hints = _Hints(dependency, context_type)
        return {p.name: hints.resolve(p.name, p.annotation) for p in _read(dependency).parameters.values()}

    found = {name: marker for name, annotation in resolved.items() if (marker := marker_of(annotation)) is not None}
    provided = {name: provider_of(marker, resolve, lambda given: _takes(given, context_type)) for name, marker in found.items()}
    if not inspect.iscoroutinefunction(fn):
        for name, provider in provided.items():
            if provider.is_async:
                raise ConfigError(
                    f"{fn.__qualname__}: parameter {name!r} is provided by asynchronous code, but {fn.__qualname__} is a plain "
                    "function: make it `async def`, or provide the parameter by plain functions"
                )
    return provided


def _takes(annotation: Any, context_type: type) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _takes(get_args(annotation)[0], context_type)
    if origin in (Union, UnionType):
        return any(_takes(choice, context_type) for choice in get_args(annotation))
    candidate = origin or annotation
    if not isinstance(candidate, type):
        return False
    # A workflow may annotate its context as that of any job: it gets its own.
    return issubclass(candidate, context_type) or (candidate is not object and candidate in context_type.__mro__)


class _Hints:
    """Resolves annotations one by one, so that an error can name the parameter."""

    def __init__(self, fn: Callable[..., Any], context_type: type) -> None:
        self._fn = fn
        self._context_type = context_type
        inner = inspect.unwrap(fn)
        self._globals: dict[str, Any] = getattr(inner, "__globals__", {})
        self._locals = _closure(inner)

    def resolve(self, name: str, annotation: Any) -> Any:
        if annotation is _EMPTY:
            return Any
        carrier: Any = lambda: None  # noqa: E731 - holds one annotation, never called
        carrier.__annotations__ = {name: annotation}
        while True:
            try:
                return get_type_hints(carrier, self._globals, self._locals, include_extras=True)[name]
            except NameError as error:
                self._define(error.name, name, annotation)
            except Exception as error:
                raise self._unresolved(name, annotation, f"{type(error).__name__}: {error}") from error

    def _define(self, missing: str | None, name: str, annotation: Any) -> None:
        if missing == self._context_type.__name__ and missing not in self._locals:
            self._locals[missing] = self._context_type  # imported for the type checker only
            return
        frame = _frame_defining(missing, self._globals)
        if missing is None or missing in self._locals or frame is None:
            way_out = "define it before the job, and import it at run time (not under TYPE_CHECKING)"
            raise self._unresolved(name, annotation, f"{missing!r} is not defined: {way_out}") from None
        self._locals[missing] = frame.f_locals[missing]

    def _unresolved(self, name: str, annotation: Any, reason: str) -> ConfigError:
        subject = "the return annotation" if name == "return" else f"parameter {name!r}"
        return ConfigError(f"{self._fn.__qualname__}: {subject} is annotated {annotation!r}, but {reason}")


def _closure(fn: Any) -> dict[str, Any]:
    found = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _frame_defining(name: str | None, module: dict[str, Any]) -> FrameType | None:
    """The frame of the enclosing function, for a job that is defined inside one: the job cannot reach its types otherwise."""
    frame = inspect.currentframe()
    while frame is not None and not (frame.f_globals is module and name in frame.f_locals):
        frame = frame.f_back
    return frame
