"""Whether and when a failed attempt is retried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Literal, Self, get_args

from tenure.model.durations import Duration, format_duration, to_timedelta
from tenure.model.errors import ConfigError
from tenure.model.options import check_option_names, checks_fields, did_you_mean

Backoff = Literal["fixed", "linear", "exponential"]
ExceptionTypes = type[BaseException] | Iterable[type[BaseException]]

MOST_ATTEMPTS = 1_000_000  # far more than useful, and within a database integer


@checks_fields
@dataclass(frozen=True, init=False, repr=False)
class Retry:
    max_attempts: int
    """Attempts in total, including the first; 1 means no retry. Crashes of a worker do not count. Default 3."""

    backoff: Backoff
    """How the wait grows: not at all, by `initial` each time, or by `multiplier` each time. Default exponential."""

    initial: timedelta
    """The wait after the first failure. Default 1 s."""

    multiplier: float
    """The growth of an exponential wait; at least 1. Default 2."""

    max_backoff: timedelta
    """No wait is longer. At least `initial`. Default 5 m."""

    jitter: bool
    """Shortens each wait at random, to half at most, so that jobs that failed together are retried apart. Default on."""

    on: tuple[type[BaseException], ...] | None
    """Only these exceptions are retried. Default: every `Exception`."""

    give_up_on: tuple[type[BaseException], ...] | None
    """These exceptions are not retried, even if `on` names them. Default: none."""

    def __init__(
        self,
        max_attempts: int = 3,
        *,
        backoff: Backoff = "exponential",
        initial: Duration = "1s",
        multiplier: float = 2.0,
        max_backoff: Duration = "5m",
        jitter: bool = True,
        on: ExceptionTypes | None = None,
        give_up_on: ExceptionTypes | None = None,
    ) -> None:
        problems: list[str] = []
        checked = {
            "max_attempts": _attempts(max_attempts, problems),
            "backoff": _backoff(backoff, problems),
            "initial": _duration("initial", initial, problems),
            "multiplier": _multiplier(multiplier, problems),
            "max_backoff": _duration("max_backoff", max_backoff, problems),
            "jitter": _flag("jitter", jitter, problems),
            "on": _exceptions("on", on, problems),
            "give_up_on": _exceptions("give_up_on", give_up_on, problems),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not problems and self.initial > self.max_backoff:
            longest, first = format_duration(self.max_backoff), format_duration(self.initial)
            problems.append(f"max_backoff is {longest}, but must be at least initial ({first}): raise it to {first}")
        if problems:
            raise ConfigError("retry: " + "; ".join(problems))

    @classmethod
    def from_value(cls, value: Retry | int | Mapping[str, Any] | None) -> Self:
        """A number is `max_attempts`; a mapping holds the names of the fields; None is the default."""
        match value:
            case None:
                return cls()
            case cls():
                return value
            case int() if not isinstance(value, bool):
                return cls(value)
            case Mapping():
                check_option_names(map(str, value), [field.name for field in fields(cls)], what="retry")
                return cls(**value)
        raise ConfigError(f"retry is {value!r}: use Retry(...), a number of attempts, or a mapping of Retry's fields")

    def with_attempts(self, max_attempts: int) -> Self:
        """The same policy with another number of attempts."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{**given, "max_attempts": max_attempts})

    def delay(self, attempt: int, random: float) -> timedelta:
        """The wait after failed run number `attempt` (from 1). `random` is drawn by the caller from [0, 1)."""
        nominal = self._nominal(attempt)
        return nominal * (0.5 + random / 2) if self.jitter else nominal

    def wants(self, exc: BaseException) -> bool:
        if self.give_up_on is not None and isinstance(exc, self.give_up_on):
            return False
        return isinstance(exc, Exception if self.on is None else self.on)

    def _nominal(self, attempt: int) -> timedelta:
        seconds = self.initial.total_seconds() * self._growth(attempt)
        return timedelta(seconds=seconds) if seconds < self.max_backoff.total_seconds() else self.max_backoff

    def _growth(self, attempt: int) -> float:
        if not self.initial or self.backoff == "fixed":
            return 1.0
        if self.backoff == "linear":
            return float(max(attempt, 1))
        try:
            return self.multiplier ** max(attempt - 1, 0)
        except OverflowError:
            return math.inf

    def __repr__(self) -> str:
        parts = [
            f"max_attempts={self.max_attempts}",
            f"backoff={self.backoff!r}",
            f"initial={format_duration(self.initial)!r}",
            f"multiplier={self.multiplier:g}",
            f"max_backoff={format_duration(self.max_backoff)!r}",
            f"jitter={self.jitter}",
        ]
        filters = {"on": self.on, "give_up_on": self.give_up_on}
        parts += [f"{name}=({', '.join(t.__name__ for t in types)},)" for name, types in filters.items() if types]
        return f"Retry({', '.join(parts)})"


def _attempts(value: object, problems: list[str]) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ATTEMPTS:
        problems.append(f"max_attempts is {value!r}, but must be a whole number from 1 (never retry) to {MOST_ATTEMPTS}")
    return value


def _backoff(value: object, problems: list[str]) -> object:
    known = get_args(Backoff)
    if not isinstance(value, str) or value not in known:
        problems.append(f"backoff is {value!r}; {did_you_mean(value, known)}")
    return value


def _duration(name: str, value: Duration, problems: list[str]) -> timedelta:
    try:
        return to_timedelta(value, what=name)
    except ConfigError as error:
        problems.append(str(error))
        return timedelta()


def _multiplier(value: object, problems: list[str]) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 1_000_000:
        problems.append(f"multiplier is {value!r}, but must be a number from 1 to 1000000")
        return value
    return float(value)


def _flag(name: str, value: object, problems: list[str]) -> object:
    if not isinstance(value, bool):
        problems.append(f"{name} is {value!r}, but must be True or False")
    return value


def _exceptions(name: str, value: object, problems: list[str]) -> object:
    if value is None:
        return None
    types = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | type) else (value,)
    if not types:
        problems.append(f"{name} is empty: leave it out, or name the exceptions")
    problems.extend(
        f"{name} holds {item!r}, which is not an exception class"
        for item in types
        if not (isinstance(item, type) and issubclass(item, BaseException))
    )
    return types
