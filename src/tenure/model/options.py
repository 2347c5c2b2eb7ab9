"""Checks for the options of definitions and calls: names, values, flags."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast, get_args

from tenure.model.errors import ConfigError, InvalidPayload

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")
C = TypeVar("C", bound=type)

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The nearest known name as a question, or the list of all known ones."""
    names = [str(one) for one in known]
    near = get_close_matches(str(name), names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}" if names else "there are none"


def check_option_names(given: Iterable[str], known: Collection[str], *, what: str) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"{what} has no option {name!r}; {did_you_mean(name, known)}")


def checks_options(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """An unknown keyword raises `ConfigError` with the nearest known one, instead of a `TypeError`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = option_names(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if not known.keys() >= kwargs.keys():
                check_option_names(kwargs, known, what=what)
            return function(*args, **kwargs)

        return checked

    return decorate


def checks_fields(cls: C) -> C:
    """The same for a class: its fields are its options."""
    setattr(cls, "__init__", checks_options(cls.__name__)(cast("Any", cls).__init__))  # noqa: B010 - mypy refuses the plain form
    return cls


def option_names(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that can be given by name."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p for p in parameters if p.kind in _BY_NAME and p.name != "self"}


def check_option(name: str, check: Callable[[V], R], given: V) -> R:
    """The result of the check. Its error has the name of the option: a form shows it at that field."""
    try:
        return check(given)
    except (ConfigError, InvalidPayload) as error:
        error.option = error.option or name
        raise


def one_of(given: Any, choice: Any, *, what: str) -> Any:
    """`choice` is a Literal."""
    known = get_args(choice)
    if not isinstance(given, str) or given not in known:
        raise ConfigError(f"{what} is {given!r}; {did_you_mean(given, known)}")
    return given


def flag(given: Any, *, what: str) -> bool:
    if not isinstance(given, bool):
        raise ConfigError(f"{what} is {given!r}, but must be True or False")
    return given


def whole_number(given: Any, low: int, high: int, *, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
        raise ConfigError(f"{what} is {given!r}, but must be a whole number from {low} to {high}")
    return given
