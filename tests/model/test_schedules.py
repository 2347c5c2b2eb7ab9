"""Schedules as values: what is refused, when they run, and what is decided of times that have come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tenure import ConfigError
from tenure.model.schedules import GRACE, Schedule, schedule
from tenure.model.system_data import SystemData
from tenure.model.ticks import MOST_TIMES, Missed, decide

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def make(**options) -> Schedule:
    if "cron" not in options:
        options = {"every": "1m", **options}
    return schedule(**{"name": "s", "kind": "work", **options})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cron": "0 9 * * *", "every": "1m"}, "either a cron expression"),
        ({"every": None}, "either a cron expression"),
        ({"every": "10ms"}, "at least 1s"),
        ({"every": "1m", "timezone": "Europe/Berlin"}, "no time zone"),
        ({"jitter": "1m"}, "shorter than every"),
        ({"overlap": "skpi"}, "did you mean 'skip'?"),
        ({"catch_up": "some"}, "use one of none, one, all"),
        ({"catch_up_limit": 0}, "from 1 to 1000"),
        ({"catch_up_limit": 1001}, "from 1 to 1000"),
        ({"name": ""}, "its name is '', but must be a name"),
        ({"name": "x" * 201}, "201 bytes long, but at most 200"),
        ({"name": "ё" * 101}, "202 bytes long, but at most 200"),
        ({"kind": "x" * 201}, "201 bytes long, but at most 200"),
        ({"queue": "x" * 201}, "201 bytes long, but at most 200"),
        ({"capability": "x" * 201}, "201 bytes long, but at most 200"),
        ({"queue": ""}, "its queue is '', but must be a name"),
        ({"priority": 101}, "priority is 101"),
        ({"cron": "0 9 * * *", "timezone": "Moon"}, "'Moon' is not known"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options, told):
    with pytest.raises(ConfigError) as caught:
        make(**options)
    assert str(caught.value).startswith("schedule ")
    assert told in str(caught.value)


def test_intervals_are_counted_from_the_epoch_in_every_process():
    every = make(every="7s")
    times = every.upcoming(NOON, 3)
    assert all(moment.timestamp() % 7 == 0 for moment in times)
    assert times[0] > NOON
    assert times[2] - times[0] == timedelta(seconds=14)
    assert every.next_after(times[0]) == times[1]
    assert every.next_after(times[1] - timedelta(microseconds=1)) == times[1]


def test_upcoming_times_are_in_the_schedules_own_zone():
    [first] = make(cron="0 9 * * *", timezone="Europe/Berlin").upcoming(NOON, 1)
    assert first.isoformat() == "2026-03-04T09:00:00+01:00"


def test_jitter_is_the_same_in_every_process_and_spread_over_the_window():
    spread = make(every="1h", jitter="10m")
    times = spread.upcoming(NOON, 200)
    delays = [spread.delay_of(moment) for moment in times]
    assert delays == [make(every="1h", jitter="10m").delay_of(moment.astimezone(UTC)) for moment in times]
    assert all(timedelta() <= delay < timedelta(minutes=10) for delay in delays)
    tenths = {int(delay / MINUTE) for delay in delays}
    assert tenths == set(range(10))
    assert make(name="other", every="1h", jitter="10m").delay_of(times[0]) != delays[0]
    assert make().delay_of(NOON) == timedelta()


def test_it_travels_as_plain_data():
    made = make(cron="0 9 * * 1", timezone="Europe/Berlin", jitter="90s", input={"a": [1]}, priority="high")
    assert Schedule.from_json(made.to_json()) == made
    assert Schedule.from_json(make().to_json()) == make()
    assert made.in_words() == "at 09:00 on Monday, Europe/Berlin"
    assert make(every="90m").in_words() == "every 1h 30m"


def test_a_time_on_time_is_run_under_every_policy():
    for catch_up in ("none", "one", "all"):
        decision = decide(make(catch_up=catch_up), NOON - MINUTE, NOON + timedelta(seconds=2))
        assert (decision.missed, decision.run, decision.since, decision.next_at) == (None, [NOON], NOON, NOON + MINUTE)


def test_before_its_time_nothing_is_decided_but_when_to_look():
    decision = decide(make(), NOON, NOON + timedelta(seconds=30))
    assert (decision.missed, decision.run, decision.since, decision.next_at) == (None, [], NOON, NOON + MINUTE)


@pytest.mark.parametrize(
    ("catch_up", "late", "missed", "run"),
    [
        ("none", timedelta(), 9, 1),
        ("none", GRACE, 9, 1),
        ("none", GRACE + timedelta(seconds=1), 10, 0),
        ("one", timedelta(), 9, 1),
        ("one", timedelta(hours=5), 9, 1),
        ("all", timedelta(), 0, 10),
        ("all", timedelta(hours=5), 0, 10),
    ],
)
def test_of_missed_times_as_the_policy_has_it(catch_up, late, missed, run):
    """Ten planned times, hours apart, the newest of them `late`."""
    every = make(every="6h", catch_up=catch_up)
    newest = every.next_after(NOON)
    decision = decide(every, newest - timedelta(hours=60), newest + late)
    assert (decision.missed.times if decision.missed else 0, len(decision.run)) == (missed, run)
    assert decision.run == [newest - timedelta(hours=6 * n) for n in reversed(range(run))]
    assert decision.since == newest
    assert decision.next_at == newest + timedelta(hours=6)


def test_all_is_limited_to_the_newest():
    decision = decide(make(catch_up="all", catch_up_limit=3), NOON - 10 * MINUTE, NOON)
    assert decision.missed == Missed(NOON - 9 * MINUTE, NOON - 3 * MINUTE, 7)
    assert decision.run == [NOON - 2 * MINUTE, NOON - MINUTE, NOON]


@pytest.mark.parametrize("catch_up", ["none", "one", "all"])
def test_a_long_time_away_is_gone_through_in_steps_and_nothing_is_left_out(catch_up):
    every = make(catch_up=catch_up, catch_up_limit=10)
    since, now, decisions = NOON - 5000 * MINUTE, NOON, []
    while not decisions or decisions[-1].next_at <= now:
        decisions.append(decide(every, since, now))
        since = decisions[-1].since
    assert [decision.missed.times for decision in decisions[:-1]] == [MOST_TIMES] * (len(decisions) - 1)
    missed = sum(decision.missed.times for decision in decisions if decision.missed)
    assert missed + sum(len(decision.run) for decision in decisions) == 5000
    assert len(decisions[-1].run) == (10 if catch_up == "all" else 1)
    for before, after in pairwise(decisions):
        assert after.missed.first == before.missed.last + MINUTE


def test_what_a_job_learns_of_its_planned_time():
    system = {"schedule": {"name": "s", "for": "2026-03-03T12:00:00+00:00", "late": True}}
    planned = SystemData.of(system).planned
    assert planned is not None
    assert (planned.schedule, planned.at, planned.late) == ("s", NOON, True)
    for other in (None, {}, {"schedule": "mine"}, {"schedule": {"name": "s", "for": "tomorrow", "late": True}}, [1]):
        assert SystemData.of(other).planned is None
