"""I8 no more runs than slots, I9 higher priority first, then FIFO."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder, Row

# I8


def started(builder: LedgerBuilder, worker: str = "w1", **row: object) -> Row:
    made = builder.enqueue(**row)
    builder.claim(made, worker)
    builder.start(made)
    return made


@pytest.mark.parametrize(("kind", "found"), [("quick", ["I8"]), ("stubborn", []), ("stubborn_thread", [])])
def test_more_handlers_at_once_than_slots(kind, found, tmp_path):
    builder = LedgerBuilder()
    for row in [started(builder, kind=kind) for _ in range(3)]:
        builder.complete(row)
    assert builder.broken(tmp_path) == found


def test_as_many_handlers_as_slots(tmp_path):
    builder = LedgerBuilder()
    for worker in ("w1", "w2"):
        for row in [started(builder, worker) for _ in range(2)]:
            builder.complete(row)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize("end", ["returned", "raised", "aborted"])
def test_a_handler_that_ended_has_left_its_slot(end, tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=1)
    for _ in range(2):
        row = started(builder)
        builder.run(end, row)
        builder.remove(row)
        builder.settle(row, "failed")
    assert builder.broken(tmp_path) == []


def test_a_killed_process_takes_its_runs_along(tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=1)
    row = started(builder, "w1")
    builder.crash(row)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == []


# I9


def overtaken(builder: LedgerBuilder, **older: object) -> Row:
    """A pending job, and newer ones that are claimed before it, for longer than allowed."""
    old = builder.enqueue(**older)
    for _ in range(2):
        builder.done()
        builder.wait(builder.campaign.late + 1)
    builder.done()
    return old


def test_a_job_that_is_overtaken_for_long(tmp_path):
    builder = LedgerBuilder()
    builder.finish(overtaken(builder))
    assert builder.broken(tmp_path) == ["I9"]


def test_a_job_that_is_never_claimed_while_others_are(tmp_path):
    builder = LedgerBuilder()
    builder.cancel(overtaken(builder))
    assert builder.broken(tmp_path) == ["I9"]


@pytest.mark.parametrize("other", [{"queue": "mail"}, {"priority": 25}])
def test_other_queues_and_priorities_have_their_own_order(other, tmp_path):
    builder = LedgerBuilder()
    builder.finish(overtaken(builder, **other))
    assert builder.broken(tmp_path) == []


def test_an_urgent_job_that_waits_while_others_are_claimed(tmp_path):
    builder = LedgerBuilder()
    builder.finish(overtaken(builder, priority=75))
    assert builder.broken(tmp_path) == ["I9"]


def test_a_job_may_be_overtaken_for_a_moment(tmp_path):
    """Another claim had locked it, and was rolled back."""
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.done()
    builder.wait(builder.campaign.late - 1)
    builder.done()
    builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_long_queue_is_not_overtaking(tmp_path):
    builder = LedgerBuilder()
    rows = [builder.enqueue() for _ in range(6)]
    for first, second in zip(rows[1::2], rows[::2], strict=True):
        builder.wait(builder.campaign.late * 2)
        builder.finish(first)
        builder.finish(second)
    assert builder.broken(tmp_path) == []


def test_jobs_that_no_newer_job_overtakes_may_wait_for_ever(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.wait(100)
    builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_job_in_two_crashes_runs_apart_from_the_others(tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=9)
    row = started(builder)
    builder.crash(row)
    builder.claim(row)
    builder.start(row)
    builder.crash(row)
    for _ in range(3):
        builder.wait(builder.campaign.late + 1)
        builder.done()
    builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_job_that_runs_apart_overtakes_no_job(tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=9)
    waiting = builder.enqueue()
    for _ in range(2):
        row = builder.enqueue()
        for _ in range(2):
            row.crashes += 1
        builder.moves[-1] = builder.moves[-1]._replace(crashes=2)
        builder.finish(row)
        builder.wait(builder.campaign.late + 1)
    builder.finish(waiting)
    assert builder.broken(tmp_path) == ["I13"]  # inserted with crashes; the order is correct


def test_a_returned_job_keeps_its_place(tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=9)
    row = started(builder)
    builder.wait(60)
    builder.crash(row)
    for _ in range(2):
        builder.done()
        builder.wait(builder.campaign.late + 1)
    builder.done()
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I9"]


def test_a_promoted_job_waits_from_its_promotion_on(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue(state="scheduled")
    for _ in range(3):
        builder.wait(builder.campaign.late + 1)
        builder.done()
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(("fault", "found"), [("server_stop", []), ("disk_full", []), ("kill_child", ["I9"])])
def test_an_outage_of_the_server_is_an_excuse(fault, found, tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.fault(fault, 1.0)
    for _ in range(2):
        builder.done()
        builder.wait(builder.campaign.late + 1)
    builder.done()
    builder.finish(row)
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("afterwards", "found"), [(1.0, []), (20.0, ["I9"])])
def test_the_time_in_which_a_locked_table_held_up_all_does_not_count(afterwards, found, tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.done()
    builder.fault("lock_core", builder.campaign.late + 5)
    builder.wait(afterwards)
    builder.done()
    builder.finish(row)
    assert builder.broken(tmp_path) == found


def test_a_transaction_that_commits_late_is_not_seen_before(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    for _ in range(3):
        builder.done()
        builder.wait(builder.campaign.late + 1)
    builder.calls[0] = builder.calls[0]._replace(ended=builder.now)
    builder.finish(row)
    assert builder.broken(tmp_path) == []
