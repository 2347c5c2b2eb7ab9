"""What a handler may return or raise to say how its job goes on. Outcomes are values.

`Snooze`, `Fail` and `Cancel` are exceptions as well, so that code deep inside a handler can raise them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

from tenure.model.durations import Duration, to_timedelta
from tenure.model.errors import ConfigError
from tenure.model.options import checks_fields


class Outcome(Exception):  # noqa: N818 - a decision, not an error
    """Return it or raise it from a handler."""


@checks_fields
class Snooze(Outcome):
    """Run the job again after `delay`, or at the time `until`. No attempt is spent.

    `Snooze("10m")`, `Snooze(until=datetime(2030, 1, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")))`
    """

    @overload
    def __init__(self, delay: Duration) -> None: ...
    @overload
    def __init__(self, *, until: datetime) -> None: ...

    def __init__(self, delay: Duration | None = None, *, until: datetime | None = None) -> None:
        if (delay is None) == (until is None):
            raise ConfigError('Snooze takes either a delay, Snooze("10m"), or a time, Snooze(until=...)')
        self.delay: timedelta | None = None if delay is None else to_timedelta(delay, what="Snooze delay")
        self.until: datetime | None = None if until is None else _in_utc(until)
        super().__init__(f"snoozed until {self.until}" if self.delay is None else f"snoozed for {self.delay}")


def _in_utc(until: datetime) -> datetime:
    if not isinstance(until, datetime):
        raise ConfigError(f"Snooze(until=...) is {until!r}, which is not a datetime: use datetime(..., tzinfo=UTC)")
    if until.utcoffset() is None:
        raise ConfigError(f"Snooze(until=...) is {until!r}, which has no time zone: use datetime(..., tzinfo=UTC)")
    try:
        return until.astimezone(UTC)
    except (OverflowError, ValueError):
        raise ConfigError(f"Snooze(until=...) is {until!r}, which is outside of the years 1 to 9999 in UTC") from None


class Fail(Outcome):
    """The job has failed for good: no retry, even if attempts are left."""

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason or "failed by its handler")


class Cancel(Outcome):
    """The job is not needed any more."""

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason or "canceled by its handler")
