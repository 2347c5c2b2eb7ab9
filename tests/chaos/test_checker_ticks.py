"""I10 each planned time once, and I2 for jobs of schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.builder import BEGAN, LedgerBuilder

FIRST = BEGAN + 20  # the first whole minute after the beginning
HEALED = FIRST + 200


def minute(number: int) -> float:
    return FIRST + 60.0 * number


def planned(**definition: Any) -> LedgerBuilder:
    """Four planned times before the faults are over: the minutes 0 to 3."""
    builder = LedgerBuilder()
    builder.done()
    builder.set(healed=HEALED, schedules=("s",))
    builder.schedule(**definition)
    return builder


def advance_to(builder: LedgerBuilder, number: int) -> None:
    builder.now = max(builder.now, minute(number))


def record(builder: LedgerBuilder, *numbers: int) -> None:
    """Records each time when it is due, and finishes its job at once."""
    for number in numbers:
        advance_to(builder, number)
        builder.finish(builder.enqueue_tick(minute(number)))
        builder.record_until(minute(number))


def what_is_wrong(builder: LedgerBuilder, folder: Any) -> list[str]:
    return [violation.what for violation in builder.check(folder).violations if violation.number == "I10"]


# Sound


def straight(builder: LedgerBuilder) -> None:
    record(builder, 0, 1, 2, 3, 4)


def caught_up(builder: LedgerBuilder) -> None:
    advance_to(builder, 3)
    rows = [builder.enqueue_tick(minute(number), xact=7) for number in range(4)]
    builder.record_until(minute(3))
    for row in rows:
        builder.finish(row)


def paused_after_the_faults(builder: LedgerBuilder) -> None:
    record(builder, 0, 1, 2, 3)
    builder.now = HEALED + 1
    builder.record_until(minute(3), paused=True)


def requested_by_a_user(builder: LedgerBuilder) -> None:
    record(builder, 0, 1, 2, 3)
    builder.finish(builder.enqueue_tick(builder.now, by="ann"))


@pytest.mark.parametrize("history", [straight, caught_up, paused_after_the_faults, requested_by_a_user])
def test_times_that_are_recorded_once(history: Callable[[LedgerBuilder], None], tmp_path):
    builder = planned()
    history(builder)
    verdict = builder.check(tmp_path)
    assert verdict.ok, verdict.as_text()
    assert verdict.counts.ticks >= 4


def test_times_that_the_limit_leaves_out(tmp_path):
    builder = planned(catch_up_limit=2)
    advance_to(builder, 3)
    builder.tick(minute(0), "missed", until=minute(1), times=2, xact=7)
    for number in (2, 3):
        builder.finish(builder.enqueue_tick(minute(number), xact=7))
    builder.record_until(minute(3))
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(("catch_up", "run"), [("one", True), ("none", False), ("none", True)])
def test_times_that_the_policy_leaves_out(catch_up, run, tmp_path):
    builder = planned(catch_up=catch_up)
    builder.now = minute(3) + (1 if run else 61)
    last = 2 if run else 3
    builder.tick(minute(0), "missed", until=minute(last), times=last + 1, xact=7)
    if run:
        builder.finish(builder.enqueue_tick(minute(3), xact=7))
    builder.record_until(minute(3))
    assert builder.broken(tmp_path) == []


def test_times_that_are_skipped_while_a_job_is_live(tmp_path):
    builder = planned(overlap="skip")
    advance_to(builder, 0)
    row = builder.enqueue_tick(minute(0))
    advance_to(builder, 1)
    builder.tick(minute(1), "skipped")
    builder.finish(row)
    record(builder, 2, 3)
    assert builder.broken(tmp_path) == []


def test_a_dead_letter_is_not_a_live_job(tmp_path):
    builder = planned(overlap="skip")
    advance_to(builder, 0)
    row = builder.enqueue_tick(minute(0))
    for worker in ("w2", "w3", "w4"):
        builder.claim(row, worker)
        builder.start(row)
        builder.crash(row)
    record(builder, 1, 2, 3)
    assert builder.broken(tmp_path) == []


def test_times_that_are_queued(tmp_path):
    builder = planned(overlap="queue")
    advance_to(builder, 0)
    row = builder.enqueue_tick(minute(0))
    advance_to(builder, 2)
    for number in (1, 2):
        builder.tick(minute(number), "queued", xact=7)
    for number in (1, 2):
        builder.finish(row)
        row = builder.enqueue_tick(minute(number), was="queued")
    builder.finish(row)
    record(builder, 3)
    assert builder.broken(tmp_path) == []


# Broken


def test_a_time_without_a_record(tmp_path):
    builder = planned()
    record(builder, 0, 2, 3)
    assert what_is_wrong(builder, tmp_path) == ["has no record of this time"]


def test_times_that_were_not_recorded(tmp_path):
    builder = planned()
    record(builder, 0, 1)
    assert what_is_wrong(builder, tmp_path) == ["has no record of this time"] * 2


def test_a_time_that_is_recorded_twice(tmp_path):
    """As one of many that were missed, and by itself."""
    builder = planned(catch_up="one")
    advance_to(builder, 2)
    builder.tick(minute(0), "missed", until=minute(1), times=2, xact=7)
    builder.finish(builder.enqueue_tick(minute(1), xact=7))
    record(builder, 2, 3)
    assert what_is_wrong(builder, tmp_path) == ["recorded this time 2 times"]


def test_a_time_that_was_never_planned(tmp_path):
    builder = planned()
    record(builder, 0, 1, 2, 3)
    builder.finish(builder.enqueue_tick(minute(1) + 7))
    assert what_is_wrong(builder, tmp_path) == ["has a tick for 1 planned times, but there are 0"]


def test_more_missed_times_than_there_were(tmp_path):
    builder = planned(catch_up="one")
    advance_to(builder, 3)
    builder.tick(minute(0), "missed", until=minute(2), times=2, xact=7)
    builder.finish(builder.enqueue_tick(minute(3), xact=7))
    builder.record_until(minute(3))
    assert what_is_wrong(builder, tmp_path) == ["has a tick for 2 planned times, but there are 3"]


def test_a_time_that_was_missed_without_need(tmp_path):
    builder = planned()
    record(builder, 0, 1)
    advance_to(builder, 2)
    builder.tick(minute(2), "missed")
    record(builder, 3)
    assert what_is_wrong(builder, tmp_path) == ["missed a time that its catch-up (all) should not miss"]


def test_more_caught_up_than_the_policy_says(tmp_path):
    builder = planned(catch_up="one")
    caught_up(builder)
    assert what_is_wrong(builder, tmp_path) == ["caught up 4 times at once, but the limit is 1"]


def test_a_tick_without_its_job(tmp_path):
    builder = planned()
    record(builder, 0, 1, 2)
    advance_to(builder, 3)
    builder.tick(minute(3))
    assert what_is_wrong(builder, tmp_path) == ["has a tick whose job was never enqueued"]


def test_a_tick_with_the_job_of_another(tmp_path):
    builder = planned()
    record(builder, 0, 1, 2)
    builder.tick(minute(3), job=builder.ticks[0].job)
    assert what_is_wrong(builder, tmp_path) == ["has a tick with the job of another tick"]


def test_a_tick_with_a_job_of_another_kind(tmp_path):
    builder = planned()
    record(builder, 0, 1, 2)
    tick = builder.tick(minute(3))
    builder.finish(builder.insert(tick.job or "", None, "brief"))
    assert what_is_wrong(builder, tmp_path) == ["has a tick whose job is brief, not quick"]


@pytest.mark.parametrize(("outcome", "job"), [("enqueued", None), ("skipped", "tick-1")])
def test_an_outcome_that_does_not_fit_its_job(outcome, job, tmp_path):
    builder = planned(overlap="skip")
    record(builder, 0, 1, 2)
    builder.tick(minute(3), outcome, job=job)
    assert f"has a tick that is {outcome} with job {job}" in what_is_wrong(builder, tmp_path)


def test_a_job_of_a_schedule_without_a_tick(tmp_path):
    builder = planned()
    record(builder, 0, 1, 2, 3)
    builder.finish(builder.insert("out of nothing", None))
    assert builder.broken(tmp_path) == ["I2"]


def test_a_job_while_an_earlier_one_is_live(tmp_path):
    builder = planned(overlap="skip")
    advance_to(builder, 0)
    early = builder.enqueue_tick(minute(0))
    record(builder, 1)
    builder.finish(early)
    record(builder, 2, 3)
    assert what_is_wrong(builder, tmp_path) == ["enqueued a job while its job tick-1 was live"]


@pytest.mark.parametrize(
    ("overlap", "outcome"), [("allow", "skipped"), ("skip", "skipped"), ("queue", "skipped"), ("skip", "queued")]
)
def test_a_time_that_is_skipped_without_need(overlap, outcome, tmp_path):
    builder = planned(overlap=overlap)
    record(builder, 0, 1)
    advance_to(builder, 2)
    builder.tick(minute(2), outcome)
    record(builder, 3)
    assert f"has a tick that was {outcome} although no job was live" in what_is_wrong(builder, tmp_path)


def test_a_line_that_is_not_gone_through_in_order(tmp_path):
    builder = planned(overlap="queue")
    advance_to(builder, 0)
    row = builder.enqueue_tick(minute(0))
    for number in (1, 2, 3):
        advance_to(builder, number)
        builder.tick(minute(number), "queued")
    for number in (2, 1, 3):
        builder.finish(row)
        row = builder.enqueue_tick(minute(number), was="queued")
    builder.finish(row)
    assert what_is_wrong(builder, tmp_path) == ["enqueued an earlier time after a later one"]


def test_a_line_that_is_forgotten(tmp_path):
    builder = planned(overlap="queue")
    record(builder, 0, 1)
    row = builder.enqueue_tick(minute(2))
    builder.tick(minute(3), "queued")
    builder.finish(row)
    assert what_is_wrong(builder, tmp_path) == ["has a tick that is still queued at the end"]


@pytest.mark.parametrize(("was", "outcome"), [("enqueued", "skipped"), ("enqueued", None), ("missed", "enqueued")])
def test_a_record_that_is_changed_later(was, outcome, tmp_path):
    builder = planned()
    record(builder, 0, 1, 2, 3)
    builder.tick(minute(3), outcome, was=was, job="tick-4" if outcome == "enqueued" else None)
    assert f"has a tick that went from {was} to {outcome} (change 5)" in what_is_wrong(builder, tmp_path)


def test_a_change_of_a_record_that_is_missing(tmp_path):
    builder = planned(overlap="queue")
    record(builder, 0, 1, 2, 3)
    builder.enqueue_tick(minute(3), was="queued")
    assert "has a tick that was enqueued, and went from queued to enqueued" in what_is_wrong(builder, tmp_path)


@pytest.mark.parametrize(
    ("since", "overrides", "what"),
    [
        (minute(1), {}, "went back in time (change 6)"),
        (None, {}, "was deleted (change 6) without a request"),
        (minute(3), {"retired": True}, "was changed, paused or retired (change 6) without a request"),
        (minute(3), {"paused": True}, "was changed, paused or retired (change 6) without a request"),
        (minute(3), {"overlap": "skip"}, "was changed, paused or retired (change 6) without a request"),
        (minute(3), {"was_since": minute(2)}, "has a gap in its record before change 6"),
    ],
)
def test_a_schedule_that_is_changed_without_a_request(since, overrides, what, tmp_path):
    builder = planned()
    record(builder, 0, 1, 2, 3)
    builder.record_until(since, **overrides)
    assert what in what_is_wrong(builder, tmp_path)


def test_a_schedule_that_was_never_recorded(tmp_path):
    builder = planned()
    record(builder, 0, 1, 2, 3)
    builder.set(schedules=("s", "t"))
    verdict = builder.check(tmp_path)
    assert [violation.subject for violation in verdict.violations] == ["schedule t"]


def test_the_history_of_one_planned_time_contains_no_other(tmp_path):
    builder = planned(overlap="skip")
    advance_to(builder, 0)
    early = builder.enqueue_tick(minute(0))
    advance_to(builder, 1)
    builder.fault("kill_leader")
    record(builder, 1)
    builder.finish(early)
    record(builder, 2, 3)
    verdict = builder.check(tmp_path)
    history = verdict.histories["I10"]
    assert history.subject == "schedule s at 1970-01-12 13:48:00 UTC"
    begins = [line.what.split()[0] for line in history.lines]
    assert begins[:4] == ["schedule", "fault", "tick", "jobs"]
    assert begins.count("tick") == 1
    assert [line.what for line in history.lines if line.what.startswith("tick")] == [
        "tick      1970-01-12 13:48:00 UTC: new -> enqueued (change 2, transaction 2, job tick-2)"
    ]
    assert "schedule  recorded up to: 1970-01-12 13:46:40 UTC -> 1970-01-12 13:48:00 UTC" in "\n".join(
        line.what for line in history.lines
    )


def test_the_history_of_a_time_without_a_record_shows_the_changes_around_it(tmp_path):
    builder = planned()
    record(builder, 0, 2, 3)
    lines = [line.what for line in builder.check(tmp_path).histories["I10"].lines]
    assert [line.split()[0] for line in lines] == ["schedule", "schedule"]
    assert "1970-01-12 13:47:00 UTC -> 1970-01-12 13:49:00 UTC" in lines[1]
