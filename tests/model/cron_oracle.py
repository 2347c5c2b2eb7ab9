"""What a cron expression means, worked out by looking at every minute. Shares nothing with the product but the rule as written
in docs/how-to/schedules.md."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Expression:
    def __init__(self, text: str) -> None:
        words = text.split()
        parts = [_values(word, low, high) for word, (low, high) in zip(words, RANGES, strict=True)]
        self.minutes, self.hours, self.days, self.months, weekdays = parts
        self.weekdays = {day % 7 for day in weekdays}
        self.both_days = words[2].startswith("*") or words[4].startswith("*")
        self.names_times = not words[0].startswith("*") and not words[1].startswith("*")

    def fits(self, wall: datetime) -> bool:
        if wall.minute not in self.minutes or wall.hour not in self.hours or wall.month not in self.months:
            return False
        by_month, by_week = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return (by_month and by_week) if self.both_days else (by_month or by_week)


def _values(word: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start, end = (low, high) if span == "*" else (int(first), int(last or first))
        found |= set(range(start, end + 1, int(step or 1)))
    return found


class Window:
    """Every minute of a stretch of time, with what the wall clock says."""

    def __init__(self, start: datetime, end: datetime, zone: ZoneInfo) -> None:
        self.start, self.end = start, end
        self.minutes = [(moment, moment.astimezone(zone)) for moment in _minutes(start, end)]
        walls = [(start - MINUTE).astimezone(zone).replace(tzinfo=None)]
        walls += [local.replace(tzinfo=None) for _, local in self.minutes]
        self.jumped_over = {
            moment: list(_minutes(before + MINUTE, wall))
            for (moment, _), before, wall in zip(self.minutes, walls[:-1], walls[1:], strict=True)
            if wall > before + MINUTE
        }

    def times(self, expression: Expression) -> list[datetime]:
        return list(self._by_the_wall(expression) if expression.names_times else self._as_time_passes(expression))

    def _as_time_passes(self, expression: Expression) -> Iterator[datetime]:
        return (moment for moment, local in self.minutes if expression.fits(local))

    def _by_the_wall(self, expression: Expression) -> Iterator[datetime]:
        for moment, local in self.minutes:
            first = expression.fits(local) and local.fold == 0
            if first or (moment in self.jumped_over and any(map(expression.fits, self.jumped_over[moment]))):
                yield moment


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += MINUTE


def windows(zone: ZoneInfo, years: range) -> Iterator[Window]:
    """The days around each jump of the clock, and some ordinary ones."""
    day = datetime(years.start, 1, 1, tzinfo=UTC)
    number = 0
    while day.year < years.stop:
        following = day + timedelta(days=1)
        jumps = day.astimezone(zone).utcoffset() != following.astimezone(zone).utcoffset()
        number += 1
        if jumps:
            yield Window(day - timedelta(hours=3), day + timedelta(hours=27), zone)
        elif number % 251 == 0:
            yield Window(day, following, zone)
        day = following
