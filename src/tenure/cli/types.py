"""What words on the command line stand for. What cannot be meant is wrong usage, told with the way out."""

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


class Word(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """A word that a function reads; it raises `ConfigError` or `ValueError`."""

    def __init__(self, name: str, read: Callable[[str], Any], known: tuple[str, ...] = ()) -> None:
        self.name = name
        self._read = read
        self._known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
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
    """A time, in this machine's zone where it names none; or how long ago."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        pass
    try:
        return datetime.now(UTC) - timedelta(seconds=_seconds(text))
    except ConfigError:
        raise ValueError(
            f"{text!r} is no time: give one such as 2026-01-31 or 2026-01-31T18:30, or how long ago, such as 30m, 2h, 1d"
        ) from None


def _json(text: str) -> Any:
    """`-` is what comes in by stdin."""
    if text == "-":
        text = sys.stdin.read()
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        hint = """; JSON looks like '{"user_id": 42, "name": "Ann"}', in quotes for the shell"""
        raise ValueError(f"{_cut(text)!r} is no JSON: {error.msg} at character {error.pos + 1}{hint}") from None


def read_json(text: str) -> Any:
    """What every reader of JSON takes: Python's would take NaN too."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON: give null or a finite number")


def _json_object(text: str) -> dict[str, Any]:
    value = _json(text)
    if not isinstance(value, dict):
        raise ValueError(f"""{_cut(text)!r} is no JSON object; one looks like '{{"user_id": 42}}'""")  # noqa: TRY004 - click's way
    return value


def _cursor(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError(f"{text!r} is no cursor: give the one that the page before ended with") from None


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


STATES = Word("states", _states, tuple(State))
DURATION = Word("duration", _seconds)
MOMENT = Word("time", _moment)
JSON = Word("json", _json)
JSON_OBJECT = Word("json", _json_object)
CURSOR = Word("cursor", _cursor)
PRIORITY = Word("priority", to_priority, tuple(priority.name.lower() for priority in Priority))
