"""A schedule: which job is enqueued at which times, and what happens to times that overlap or were missed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import Any, Literal

from tenure.model.crontab import Crontab, find_zone
from tenure.model.durations import Duration, format_duration, to_timedelta
from tenure.model.errors import ConfigError
from tenure.model.names import check_name
from tenure.model.options import check_option, one_of, whole_number
from tenure.model.payloads import plain_json
from tenure.model.priorities import to_priority

Overlap = Literal["skip", "queue", "allow"]
CatchUp = Literal["none", "one", "all"]

GRACE = timedelta(seconds=60)
"""A time that is recorded within this delay is on time: another leader took over, or the database was restarted."""

SHORTEST = timedelta(seconds=1)
DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When, what, and how. Made by `schedule(...)`, which checks it."""

    name: str
    kind: str
    cron: str | None = None
    every: timedelta | None = None
    timezone: str = "UTC"
    input: Any = None
    """Plain JSON, as the job's input is stored."""
    queue: str = "default"
    priority: int = 50
    capability: str | None = None
    max_attempts: int = 3
    timeout: float | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "one"
    catch_up_limit: int = DEFAULT_LIMIT
    jitter: timedelta = timedelta()
    expires: timedelta | None = None
    """After this time, a job that was not started is canceled."""

    def planned(self, after: datetime) -> Iterator[datetime]:
        """All planned times later than `after`, in order, in UTC. The same in every process."""
        return self._intervals(after) if self.every is not None else self._crontab.after(after)

    def next_after(self, moment: datetime) -> datetime | None:
        return next(self.planned(moment), None)

    def upcoming(self, moment: datetime, count: int) -> list[datetime]:
        """In the schedule's own time zone."""
        zone = find_zone(self.timezone)
        return [planned.astimezone(zone) for planned in islice(self.planned(moment), count)]

    def delay_of(self, planned: datetime) -> timedelta:
        """Jitter: how long after its planned time the job starts, the same in every process."""
        if not self.jitter:
            return timedelta()
        digest = hashlib.sha256(f"{self.name}\0{planned.astimezone(UTC).isoformat()}".encode()).digest()
        return self.jitter * (int.from_bytes(digest[:8]) / 2**64)

    def in_words(self) -> str:
        if self.every is not None:
            return f"every {format_duration(self.every)}"
        return f"{self._crontab.in_words()}, {self.timezone}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; durations are in seconds."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> Schedule:
        """From the result of `to_json`, which is not checked again."""
        spans = {name: given.get(name) for name in ("every", "jitter", "expires")}
        return Schedule(**{**given, **{name: timedelta(seconds=span) for name, span in spans.items() if span is not None}})

    @cached_property
    def _crontab(self) -> Crontab:
        assert self.cron is not None
        return Crontab(self.cron, self.timezone)

    def _intervals(self, after: datetime) -> Iterator[datetime]:
        """Counted from the epoch, so that a leader need not know when another one started."""
        assert self.every is not None
        number = (after - _EPOCH) // self.every
        while True:
            number += 1
            yield _EPOCH + number * self.every


def schedule(
    *,
    name: str,
    kind: str,
    cron: str | None = None,
    every: Duration | None = None,
    timezone: str | None = None,
    input: Any = None,  # noqa: A002 - the term used everywhere
    queue: str = "default",
    priority: int | str = "normal",
    capability: str | None = None,
    max_attempts: int = 3,
    timeout: float | None = None,
    overlap: str = "skip",
    catch_up: str = "one",
    catch_up_limit: int = DEFAULT_LIMIT,
    jitter: Duration = 0,
    expires: Duration | None = None,
) -> Schedule:
    """A checked schedule. Every mistake is a `ConfigError` that names the schedule."""
    given = {
        "name": name,
        "kind": kind,
        "every": every,
        "input": input,
        "queue": queue,
        "priority": priority,
        "capability": capability,
        "max_attempts": max_attempts,
        "overlap": overlap,
        "catch_up": catch_up,
        "catch_up_limit": catch_up_limit,
        "jitter": jitter,
        "expires": expires,
    }
    try:
        checked: dict[str, Any] = {option: check_option(option, _CHECKS[option], value) for option, value in given.items()}
        made = Schedule(cron=cron, timezone="UTC" if timezone is None else timezone, timeout=timeout, **checked)
        check_option("cron", _check_one_is_given, made)
        if made.every is None:
            check_option("timezone", find_zone, made.timezone)
            check_option("cron", lambda schedule: schedule._crontab, made)  # noqa: SLF001 - parsed here, so that mistakes are raised now
        else:
            check_option("every", _check_shortest, made.every)
            check_option("timezone", _check_no_zone, timezone)
            check_option("jitter", _check_jitter, made)
    except ConfigError as error:
        named = ConfigError(f"schedule {name!r}: {error}")
        named.option = error.option
        raise named from None
    return made


def _check_one_is_given(made: Schedule) -> None:
    if (made.cron is None) == (made.every is None):
        raise ConfigError("give either a cron expression such as '0 9 * * *', or every='10s'")


def _check_shortest(every: timedelta) -> None:
    if every < SHORTEST:
        raise ConfigError(f"every is {format_duration(every)}, but must be at least 1s")


def _check_no_zone(timezone: str | None) -> None:
    if timezone not in (None, "UTC"):
        raise ConfigError("an interval has no time zone: leave timezone out, or give a cron expression")


def _check_jitter(made: Schedule) -> None:
    if made.every is not None and made.jitter >= made.every:
        raise ConfigError(f"jitter is {format_duration(made.jitter)}, but must be shorter than every")


def _name(given: Any, *, what: str) -> str:
    if isinstance(given, str) and "\0" in given:
        raise ConfigError(f"{what} is {given!r}, but a name has no NUL character: remove it")
    return check_name(given, what=what)


def _optional_duration(given: Duration | None, *, what: str) -> timedelta | None:
    return None if given is None else to_timedelta(given, what=what)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "name": partial(_name, what="its name"),
    "kind": partial(_name, what="its kind"),
    "every": partial(_optional_duration, what="every"),
    "input": lambda given: {} if given is None else json.loads(plain_json(given, what="its input")),
    "queue": partial(_name, what="its queue"),
    "priority": to_priority,
    "capability": lambda given: None if given is None else _name(given, what="its capability"),
    "max_attempts": partial(whole_number, low=1, high=32_767, what="max_attempts"),
    "overlap": partial(one_of, choice=Overlap, what="overlap"),
    "catch_up": partial(one_of, choice=CatchUp, what="catch_up"),
    "catch_up_limit": partial(whole_number, low=1, high=LARGEST_LIMIT, what="catch_up_limit"),
    "jitter": partial(to_timedelta, what="jitter"),
    "expires": partial(_optional_duration, what="expires"),
}


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
