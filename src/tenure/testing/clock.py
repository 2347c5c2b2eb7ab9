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

    Delays, back-off, rates, schedules, keys and leases all go by it. It keeps running from there, until the next test begins.
    """
    database = app.settings.database
    check_is_for_tests(database)
    by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if to is not None:
        if by or to.tzinfo is None:
            raise ConfigError(f"travel(): give either a duration or a time with a time zone, not to={to!r} and {by}")
        by = to - clock_of(database)
    if by < timedelta():
        raise ConfigError(f"travel(): the clock cannot go back by {-by}: a server's clock does not either")
    return set_ahead(database, by).astimezone(UTC)
