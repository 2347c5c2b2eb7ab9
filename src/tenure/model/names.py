"""Names of queues, kinds, capabilities, schedules and limits: short enough for every index and every notification."""

from __future__ import annotations

from typing import Any

from tenure.model.errors import ConfigError

LONGEST_NAME = 200
"""Bytes in UTF-8. tenure.enqueue() and the tables check the same."""


RESERVED = "tenure."
"""Names of built-in kinds begin with it."""

GROUP_KIND = "tenure.group"
"""The kind of the job that represents a group. No worker claims it: the resolver ends it."""


def is_builtin(kind: str) -> bool:
    return kind.startswith(RESERVED)


def check_name(given: Any, *, what: str) -> str:
    """Returns the name, or raises `ConfigError`. `what` starts the message: "queue", "job 'mail': capability"."""
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(f"{what} is {shown(given)}, but must be a name: give a text that is not empty")
    size = size_in_bytes(given)
    if size > LONGEST_NAME:
        raise ConfigError(f"{what} is {shown(given)}, {size} bytes long, but at most {LONGEST_NAME} are allowed: shorten it")
    return given


def size_in_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))  # lone surrogates are refused later, when the text is encoded


def shown(given: object) -> str:
    """Short enough for a message."""
    text = repr(given)
    return text if len(text) <= 60 else text[:57] + "..."
