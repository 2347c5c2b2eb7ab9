"""Time travel: sets the clock of a test database ahead. Tenure has no other clock than that of its database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenure.app import Tenure
from tenure.model.errors import ConfigError
from tenure.store.test_databases import check_is_for_tests, clock_of, set_ahead


def travel(
    app: Tenure, *, to: datetime | None = None, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> datetime:
    """Sets the clock of the app's test database ahead, `travel(app, hours=25)`, or to a later time, and returns its time.

    Delays, backoff, rates, schedules, keys and leases all go by it. It keeps running from there, until the next test begins.
    """
    database = app.settings.database
    check_is_for_tests(database)
    by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if to is not None:
        if by:
            raise ConfigError(f"travel(): give either a duration or a time, not both to={to!r} and {by}")
        if to.tzinfo is None:
            raise ConfigError(f"travel(): to={to!r} has no time zone: give one, datetime(..., tzinfo=UTC)")
        by = to - clock_of(database)
    if by < timedelta():
        raise ConfigError(
            f"travel(): the clock cannot go back by {-by}, because that of a server does not either. Each test begins at the "
            "present: move what must happen earlier before the travel, or into a test of its own"
        )
    return set_ahead(database, by).astimezone(UTC)
