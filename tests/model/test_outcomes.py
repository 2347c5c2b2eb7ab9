"""What a handler may return or raise to decide how its job continues."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from tenure import ConfigError, Snooze
from tenure.model.outcomes import NextLink
from tenure.model.wakeup import Wakeup


def test_a_snooze_takes_a_delay():
    snooze = Snooze("10m")
    assert (snooze.delay, snooze.until, str(snooze)) == (timedelta(minutes=10), None, "snoozed for 0:10:00")


def test_a_snooze_takes_a_time_with_a_zone():
    snooze = Snooze(until=datetime(2030, 1, 1, 9, tzinfo=timezone(timedelta(hours=2))))
    assert (snooze.delay, snooze.until) == (None, datetime(2030, 1, 1, 7, tzinfo=UTC))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "either a delay"),
        ({"delay": "1s", "until": datetime.now(UTC)}, "either a delay"),
        ({"until": datetime(2030, 1, 1)}, "has no time zone"),  # noqa: DTZ001 - refused for that
        ({"until": date(2030, 1, 1)}, "is not a datetime"),
        ({"until": "2030-01-01T00:00:00Z"}, "is not a datetime"),
        ({"until": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, "outside of the years 1 to 9999"),
        ({"until": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, "outside of the years 1 to 9999"),
    ],
)
def test_what_is_neither_is_refused_with_the_way_out(given, words):
    with pytest.raises(ConfigError, match=words):
        Snooze(**given)


LINK: NextLink[None] = NextLink('{"kind":"work","input":{}}', (Wakeup.job_scheduled(), Wakeup.new_jobs("mail")))


@pytest.mark.parametrize(
    ("link", "more"),
    [
        (LINK, {}),
        (replace(LINK, keeps_capability=True), {"keeps_capability": True}),
        (replace(LINK, signals={"vote": 7}), {"signals": {"vote": 7}}),
        (replace(LINK, keeps_capability=True, signals={"a": 1, "b": 2}), {"keeps_capability": True, "signals": {"a": 1, "b": 2}}),
    ],
)
def test_a_link_keeps_all_it_has_on_the_way_to_its_worker(link, more):
    assert NextLink.from_wire(json.loads(json.dumps(link.to_wire()))) == link
    assert json.loads(link.to_json()) == {"kind": "work", "input": {}, **more}
