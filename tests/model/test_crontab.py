"""The times of cron expressions: compared with a look at every minute around every jump of the clock in ten years."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from tests.model.cron_oracle import Expression, windows

from tenure import ConfigError
from tenure.model.crontab import ALIASES, Crontab

YEARS = range(2018, 2028)
ZONES = [
    "Africa/Cairo",  # none for years, then again
    "Africa/Casablanca",  # by the moon
    "America/New_York",
    "America/Santiago",  # at midnight
    "America/St_Johns",  # half an hour off
    "Antarctica/Troll",  # by two hours
    "Asia/Beirut",  # at midnight
    "Asia/Tehran",  # at midnight, half an hour off, given up
    "Australia/Lord_Howe",  # by half an hour
    "Europe/Berlin",
    "Europe/London",
    "Pacific/Auckland",
]
EXPRESSIONS = [
    "30 2 * * *",
    "0,30 0-3 * * *",
    "0 0 * * *",
    "59 23 * * 6",
    "10 1-2 1,15 * 0",
    "*/15 * * * *",
    "20 * * * *",
    "5 */2 * * *",
    "* 5 * * *",
    "*/20 1-2 * 3,10,11 *",
]


@pytest.mark.parametrize(
    "zone",
    [zone if zone in ("Europe/Berlin", "Australia/Lord_Howe") else pytest.param(zone, marks=pytest.mark.slow) for zone in ZONES],
)
def test_ten_years_of_jumping_clocks_as_the_rule_has_it(zone):
    expressions = [(Crontab(text, zone), Expression(text)) for text in EXPRESSIONS]
    looked_at = 0
    for window in windows(ZoneInfo(zone), YEARS):
        for crontab, expression in expressions:
            wanted = window.times(expression)
            just_before = window.start - timedelta(seconds=1)
            found = list(takewhile(lambda t, end=window.end: t < end, crontab.after(just_before)))
            assert found == wanted, (zone, crontab.text, window.start)
            # From any moment in between, the same times follow.
            for moment, _ in window.minutes[::251]:
                following = next(crontab.after(moment))
                assert following == next((t for t in wanted if t > moment), following), (zone, crontab.text, moment)
                assert following > moment
        looked_at += 1
    assert looked_at >= 17


def test_a_time_that_the_clock_jumps_over_is_done_when_it_has_jumped():
    assert local("30 2 * * *", "Europe/Berlin", "2025-03-29T12:00", 2) == ["2025-03-30T03:00+02:00", "2025-03-31T02:30+02:00"]


def test_a_time_that_comes_twice_is_done_once():
    assert local("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00", 2) == ["2025-10-26T02:30+02:00", "2025-10-27T02:30+01:00"]


def test_every_half_hour_is_every_half_hour_that_passes():
    assert local("*/30 2 * * *", "Europe/Berlin", "2025-10-25T12:00", 4) == [
        "2025-10-26T02:00+02:00",
        "2025-10-26T02:30+02:00",
        "2025-10-26T02:00+01:00",
        "2025-10-26T02:30+01:00",
    ]
    assert local("*/30 2-3 * * *", "Europe/Berlin", "2025-03-29T12:00", 2) == ["2025-03-30T03:00+02:00", "2025-03-30T03:30+02:00"]


def local(text: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(Crontab(text, zone).after(datetime.fromisoformat(after).replace(tzinfo=UTC)), count)
    return [moment.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes") for moment in found]


@pytest.mark.parametrize("alias", ALIASES)
def test_the_short_forms_are_those_of_every_cron(alias):
    moment = datetime(2026, 5, 5, 5, 5, 5, 5, tzinfo=UTC)
    assert next(Crontab(alias, "UTC").after(moment)) == next(Crontab(ALIASES[alias], "UTC").after(moment))


def test_a_moment_within_its_minute_does_not_come_again():
    moment = datetime(2026, 5, 5, 9, 0, 0, 250_000, tzinfo=UTC)
    assert next(Crontab("0 9 * * *", "UTC").after(moment)) == datetime(2026, 5, 6, 9, tzinfo=UTC)
    assert next(Crontab("* * * * *", "UTC").after(moment)) == datetime(2026, 5, 5, 9, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 9 * *", "has 4 fields, but needs five: minute hour"),
        ("0 0 9 * * *", "for seconds use every="),
        ("61 * * * *", "wrong minute"),
        ("* * * * MOON", "wrong day-of-week"),
        ("0 0 31 2 *", "day-of-month"),
        ("@reboot", "@hourly"),
        ("", "has 0 fields"),
        ("a/b c d e f", "wrong minute"),
    ],
)
def test_what_cannot_be_read_is_reported_with_the_way_out(text, told):
    with pytest.raises(ConfigError) as caught:
        Crontab(text, "UTC")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("zone", "told"),
    [("Europe/Berln", "did you mean 'Europe/Berlin'?"), ("Moon", "IANA"), ("../../etc/passwd", "IANA"), ("", "IANA")],
)
def test_an_unknown_zone_is_reported_with_the_way_out(zone, told):
    with pytest.raises(ConfigError, match=told.replace("?", r"\?")):
        Crontab("0 9 * * *", zone)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 9 * * 1-5", "at 09:00 on Monday through Friday"),
        ("*/15 * * * *", "every 15th minute of every hour"),
        ("@hourly", "at the start of every hour"),
    ],
)
def test_in_words(text, words):
    assert Crontab(text, "UTC").in_words() == words
