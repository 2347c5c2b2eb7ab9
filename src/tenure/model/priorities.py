"""How urgent a job is: 0 to 100, higher runs first. Five of the numbers have names."""

from __future__ import annotations

from difflib import get_close_matches
from enum import IntEnum

from tenure.model.errors import ConfigError


class Priority(IntEnum):
    BACKGROUND = 0
    LOW = 25
    NORMAL = 50
    HIGH = 75
    CRITICAL = 100


_BY_NAME = {priority.name.lower(): int(priority) for priority in Priority}
_BY_NUMBER = {number: name for name, number in _BY_NAME.items()}
_ACCEPTED = f"a whole number from 0 to 100, or {', '.join(_BY_NAME)}"


def to_priority(value: int | str | Priority) -> int:
    number = _from_text(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 100:
        raise ConfigError(f"priority is {value!r}, but must be {_ACCEPTED}")
    return int(number)


def priority_name(number: int) -> str:
    return _BY_NUMBER.get(number, str(int(number)))


def _from_text(text: str) -> int:
    name = text.strip().lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.isascii() and name.removeprefix("-").isdigit() and len(name) <= 4:
        return int(name)
    near = get_close_matches(name, _BY_NAME, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it must be {_ACCEPTED}"
    raise ConfigError(f"priority {text!r} is not known; {hint}")
