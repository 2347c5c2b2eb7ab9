"""Reads the value of a setting, as a file, a variable or a flag gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.model.durations import to_seconds
from tenure.model.routes import to_routes

LEVELS = ("debug", "info", "warning", "error", "critical")


def reader(name: str, annotation: str) -> Callable[[Any], Any]:
    if name.endswith("_seconds"):
        return lambda value: to_seconds(float(value) if _is_number(value) else value, what=name)
    if name in ("log_failed_attempt", "log_dead_letter", "log_schedule_missed", "log_schedule_skipped"):
        return _level
    readers: dict[str, Callable[[Any], Any]] = {
        "int": _int,
        "int | None": _int,
        "bool": _bool,
        "bool | None": _bool,
        "float | None": float,
        "tuple[str, ...]": _names,
        "Routes": to_routes,
    }
    return readers.get(annotation, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.replace(".", "", 1).isdigit()


def _int(value: Any) -> int:
    if isinstance(value, bool | float) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is not a whole number")  # noqa: TRY004 - reported with the other problems
    return int(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{value!r} is not a boolean: use true or false")


def _level(value: Any) -> str:
    if str(value).lower() not in LEVELS:
        raise ValueError(f"{value!r} is not a log level: use {', '.join(LEVELS)}")
    return str(value).lower()


def _names(value: Any) -> tuple[str, ...]:
    """A list, or names separated by commas, as in variables."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{value!r} is not a list of names")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
