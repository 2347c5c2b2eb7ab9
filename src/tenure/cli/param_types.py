"""Types of command-line values. A value that cannot be parsed is wrong usage; the message contains the remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import click
from click.shell_completion import CompletionItem

from tenure.client.filters import to_states
from tenure.model.durations import to_seconds
from tenure.model.errors import ConfigError
from tenure.model.priorities import Priority, to_priority
from tenure.model.states import State


class ParsedParam(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """A value that a function parses; the function raises `ConfigError` or `ValueError`."""

    def __init__(self, name: str, parse: Callable[[str], Any], known: tuple[str, ...] = ()) -> None:
        self.name = name
        self._parse = parse
        self._known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ConfigError, ValueError) as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(before + comma + word) for word in self._known if word.startswith(last)]


def _states(text: str) -> frozenset[State]:
    return to_states([name.strip() for name in text.split(",") if name.strip()])


def _seconds(text: str) -> float:
    return to_seconds(float(text) if is_number(text) else text)


def is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit()


def _moment(text: str) -> datetime:
    """A time, in the local zone unless it names one; or an age."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        pass
    try:
        return datetime.now(UTC) - timedelta(seconds=_seconds(text))
    except ConfigError:
        raise ValueError(
            f"{text!r} is not a time: give one such as 2026-01-31 or 2026-01-31T18:30, or an age such as 30m, 2h, 1d"
        ) from None


def _json(text: str) -> Any:
    """`-` reads stdin."""
    if text == "-":
        text = sys.stdin.read()
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        hint = """; valid JSON looks like '{"user_id": 42, "name": "Ann"}', quoted for the shell"""
        raise ValueError(f"{_shortened(text)!r} is not valid JSON: {error.msg} at character {error.pos + 1}{hint}") from None


def read_json(text: str) -> Any:
    """Strict JSON: Python's parser would also accept NaN."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON: give null or a finite number")


def _json_object(text: str) -> dict[str, Any]:
    value = _json(text)
    if not isinstance(value, dict):
        raise ValueError(f"""{_shortened(text)!r} is not a JSON object; one looks like '{{"user_id": 42}}'""")  # noqa: TRY004 - click's way
    return value


def _cursor(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a cursor: give the one that the previous page ended with") from None


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


STATES = ParsedParam("states", _states, tuple(State))
DURATION = ParsedParam("duration", _seconds)
MOMENT = ParsedParam("time", _moment)
JSON = ParsedParam("json", _json)
JSON_OBJECT = ParsedParam("json", _json_object)
CURSOR = ParsedParam("cursor", _cursor)
PRIORITY = ParsedParam("priority", to_priority, tuple(priority.name.lower() for priority in Priority))
