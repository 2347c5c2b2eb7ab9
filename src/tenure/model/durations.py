"""Durations as people write them: `timedelta`, seconds, or `"1000ms" "30s" "5m" "2h" "1d" "1h30m"`."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from tenure.model.errors import ConfigError

Duration = timedelta | int | float | str

LONGEST = timedelta(days=36_525)  # a century: a longer duration is more likely a wrong unit

_MICROSECONDS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(ms|s|m|h|d)\s*")
_ACCEPTED = 'a timedelta, seconds as a number, or text like "1000ms", "30s", "5m", "2h", "1d", "1h30m"'


def to_timedelta(value: Duration, *, what: str = "duration") -> timedelta:
    microseconds = _microseconds(value, what)
    if not 0 <= microseconds <= LONGEST / _MICROSECOND:  # false for NaN too
        raise ConfigError(f"{what} is {_shown(value)}, but must be between 0 and 100 years: use {_ACCEPTED}")
    return timedelta(microseconds=round(microseconds))


def to_seconds(value: Duration, *, what: str = "duration") -> float:
    return to_timedelta(value, what=what).total_seconds()


def format_duration(span: timedelta) -> str:
    """Short and exact: `to_timedelta` reads it back to the same duration."""
    if span < timedelta():
        return "-" + format_duration(-span)
    if span < timedelta(seconds=1):
        return _decimal(span / timedelta(milliseconds=1), "ms") if span else "0s"
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    whole = [f"{count}{unit}" for count, unit in ((span.days, "d"), (hours, "h"), (minutes, "m")) if count]
    rest = seconds + span.microseconds / 1_000_000
    return " ".join([*whole, _decimal(rest, "s")] if rest else whole)


_MICROSECOND = timedelta(microseconds=1)


def _microseconds(value: Duration, what: str) -> float:
    match value:
        case timedelta():
            return value / _MICROSECOND
        case str():
            return _parsed(value, what)
        case int() | float() if not isinstance(value, bool):
            return _scaled(value)
    raise ConfigError(f"{what} is {_shown(value)}, which is not a duration: use {_ACCEPTED}")


def _parsed(text: str, what: str) -> float:
    total, position = 0.0, 0
    while part := _PART.match(text, position):
        total += float(part[1]) * _MICROSECONDS[part[2]]
        position = part.end()
    if position == 0 or position < len(text):
        raise ConfigError(f"{what} is {_shown(text)}, which is not a duration: use {_ACCEPTED}")
    return total


def _scaled(seconds: float) -> float:
    try:
        return float(seconds) * _MICROSECONDS["s"]
    except OverflowError:  # an int no float can hold
        return math.inf


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int too long to be written out
        return "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


def _decimal(number: float, unit: str) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".") + unit
