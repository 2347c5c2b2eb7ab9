"""The times of a cron expression in a time zone, and what happens where that zone's clock jumps.

cronsim finds the wall-clock times of an expression; this module decides which moments these are. The rules are Debian
cron's. An expression whose minute and hour both name times (neither begins with `*`) follows the wall clock: times that the
clock skips run once, together, right after the jump; a time that occurs twice runs the first time. Any other expression follows
elapsed time: it runs at every matching minute that occurs, each time it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from tenure.model.errors import ConfigError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

FIELDS = "minute hour day-of-month month day-of-week"

_SECOND = timedelta(seconds=1)
_LOOK = timedelta(hours=12)
"""No zone's clock jumps forward and back within this time."""


class Crontab:
    """A five-field expression or `@hourly` form, in an IANA zone. Raises `ConfigError` if no time matches."""

    def __init__(self, text: str, timezone: str) -> None:
        self.text = text
        self.fields = _five_fields(text)
        self.zone = find_zone(timezone)
        _check(text, self.fields)

    def after(self, moment: datetime) -> Iterator[datetime]:
        """All later times, in order, in UTC. Ends when no time matches within 50 years."""
        moment = moment.astimezone(UTC)
        return self._by_the_wall(moment) if self._names_times else self._as_time_passes(moment)

    def in_words(self) -> str:
        words: str = _walls(self.fields, datetime(2000, 1, 1)).explain()  # noqa: DTZ001 - only the description is used
        return words[0].lower() + words[1:]

    @cached_property
    def _names_times(self) -> bool:
        minute, hour, *_ = self.fields.split()
        return not minute.startswith("*") and not hour.startswith("*")

    def _by_the_wall(self, moment: datetime) -> Iterator[datetime]:
        last = moment
        for wall in _walls(self.fields, _wall_of(moment, self.zone)):
            found = _moment_of(wall, self.zone)
            # After the first of two equal hours, or skipped together with the previous time.
            if found > last:
                last = found
                yield found

    def _as_time_passes(self, moment: datetime) -> Iterator[datetime]:
        """From one jump of the clock to the next the wall clock runs evenly."""
        even_from, behind = moment, _wall_of(moment, self.zone) - moment.replace(tzinfo=None)
        after = moment
        while True:
            for wall in _walls(self.fields, after.replace(tzinfo=None) + behind):
                found = (wall - behind).replace(tzinfo=UTC)
                jump = _first_jump(even_from, found, self.zone)
                if jump is not None:
                    even_from, behind = jump, _wall_of(jump, self.zone) - jump.replace(tzinfo=None)
                    after = jump - _SECOND  # at the moment of the jump the wall clock shows the new time, which may match
                    break
                yield found
                even_from = found
            else:
                return


def find_zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones  # noqa: PLC0415 - needed by few

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        known = available_timezones()
    if not known:
        raise ConfigError(f"timezone {name!r}: this machine has no time zone data: pip install tzdata")
    near = get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "give an IANA name such as 'Europe/Berlin' or 'UTC'"
    raise ConfigError(f"timezone {name!r} is not known; {hint}")


def _five_fields(text: str) -> str:
    if not isinstance(text, str):
        raise ConfigError(f"cron is {text!r}, but must be text such as '0 9 * * *'")
    words = text.split()
    if len(words) == 1 and text.strip().startswith("@"):
        alias = ALIASES.get(text.strip().lower())
        if alias is None:
            raise ConfigError(f"cron {text!r} is not known: use one of {', '.join(ALIASES)}, five fields, or every='10s'")
        return alias
    if len(words) != 5:
        seconds = "; for seconds use every='10s'" if len(words) == 6 else ""
        raise ConfigError(f"cron {text!r} has {len(words)} fields, but needs five: {FIELDS}{seconds}")
    return " ".join(words)


def _check(text: str, fields: str) -> None:
    from cronsim import CronSimError  # noqa: PLC0415

    try:
        first = next(_walls(fields, datetime(2000, 1, 1)), None)  # noqa: DTZ001 - any time works
    except CronSimError as error:
        problem = re.sub(r"^Bad ", "wrong ", str(error)).lower()
        raise ConfigError(f"cron {text!r} cannot be read: {problem}; the fields are {FIELDS}") from None
    except (AssertionError, ValueError, TypeError):
        raise ConfigError(f"cron {text!r} cannot be read; the fields are {FIELDS}") from None
    if first is None:
        raise ConfigError(f"cron {text!r} never occurs: there is no such day")


def _walls(fields: str, after: datetime) -> CronSim:
    """Matching wall-clock times, without a zone: cronsim mishandles jumps of the clock that are not whole hours (Lord Howe)."""
    from cronsim import CronSim  # noqa: PLC0415

    return CronSim(fields, after)


def _wall_of(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _moment_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first moment with that wall-clock time; if the clock skips it, the moment of the jump."""
    found = wall.replace(tzinfo=zone).astimezone(UTC)
    if _wall_of(found, zone) == wall:
        return found
    # With the offset from before the jump it lies after the jump, by no more than the clock jumps.
    jump = _first_jump(found - timedelta(days=2), found, zone)
    return found if jump is None else jump


def _first_jump(start: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first moment in (start, end] at which the zone's offset differs from just before."""
    before = start
    while before < end:
        behind = min(before + _LOOK, end)
        if _offset(behind, zone) != _offset(before, zone):
            return _bisected(before, behind, zone)
        before = behind
    return None


def _bisected(before: datetime, behind: datetime, zone: ZoneInfo) -> datetime:
    """Zones change on whole seconds."""
    old = _offset(before, zone)
    low, high = int(before.timestamp()), -int(-behind.timestamp() // 1)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(datetime.fromtimestamp(middle, UTC), zone) == old:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()
