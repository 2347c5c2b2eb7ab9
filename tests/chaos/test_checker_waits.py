"""I21 no job waits without a reason."""

from __future__ import annotations

from itertools import count

import pytest

from tenure.chaos.invariants.claim_order import FEW_SUSPECTS, LIMIT_CHANGE_TIME, MAX_WAIT, MAX_WAIT_OF_SUSPECTS
from tests.chaos.builder import LedgerBuilder

WORKERS = count(1)


def sparse(free_slots: int = 3) -> LedgerBuilder:
    builder = LedgerBuilder()
    builder.set(free_slots=free_slots, concurrency=10)
    return builder


def test_a_job_that_waits_though_all_others_are_idle(tmp_path):
    """A job below the cursors, which only the full sweep finds."""
    builder = sparse()
    row = builder.enqueue()
    builder.wait(MAX_WAIT + 1)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I21"]


def test_a_job_that_is_claimed_soon(tmp_path):
    builder = sparse()
    row = builder.enqueue()
    builder.wait(MAX_WAIT - 1)
    builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_job_that_is_never_claimed(tmp_path):
    builder = sparse()
    builder.enqueue()
    builder.done()
    builder.set(drained=False)
    assert builder.broken(tmp_path) == ["I14", "I21"]


def test_a_job_that_is_canceled_after_a_long_wait(tmp_path):
    builder = sparse()
    row = builder.enqueue()
    builder.done()
    builder.wait(MAX_WAIT + 1)
    builder.cancel(row)
    assert builder.broken(tmp_path) == ["I21"]


def test_jobs_of_a_long_queue_wait(tmp_path):
    builder = sparse(free_slots=3)
    rows = [builder.enqueue() for _ in range(6)]
    builder.wait(MAX_WAIT * 3)
    for row in rows:
        builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_job_that_is_left_when_the_queue_has_become_short(tmp_path):
    builder = sparse(free_slots=3)
    first, *rows = [builder.enqueue() for _ in range(6)]
    builder.wait(MAX_WAIT * 3)
    for row in rows:
        builder.finish(row)
    builder.wait(MAX_WAIT + 1)
    builder.finish(first)
    assert "I21" in builder.broken(tmp_path)


def test_a_job_that_waited_before_the_queue_became_long(tmp_path):
    builder = sparse(free_slots=3)
    first = builder.enqueue()
    builder.wait(MAX_WAIT + 1)
    rows = [builder.enqueue() for _ in range(6)]
    for row in (first, *rows):
        builder.finish(row)
    assert "I21" in builder.broken(tmp_path)


@pytest.mark.parametrize(("fault", "found"), [("silence", []), ("fill_notify", ["I21"]), ("change_limits", ["I21"])])
def test_a_broken_network_is_an_excuse_and_a_full_notify_queue_is_not(fault, found, tmp_path):
    builder = sparse()
    row = builder.enqueue()
    builder.fault(fault, MAX_WAIT + 1)
    builder.finish(row)
    assert builder.broken(tmp_path) == found


def test_settings_of_the_database_are_an_excuse_only_when_sessions_end_for_them(tmp_path):
    builder = sparse()
    builder.fault("hostile_settings", 3 * MAX_WAIT)
    began, ended = builder.faults[0].began, builder.faults[0].ended
    builder.now = began
    builder.finish(builder.enqueue())
    late = builder.enqueue()
    builder.now = began + MAX_WAIT + 8
    builder.finish(late)
    builder.now = ended + 1
    builder.done()
    assert builder.broken(tmp_path) == ["I21"]


def test_a_caller_whose_transaction_ends_late_is_not_waited_for(tmp_path):
    builder = sparse()
    row = builder.enqueue()
    builder.wait(MAX_WAIT * 2)
    builder.calls[0] = builder.calls[0]._replace(ended=builder.now)
    builder.finish(row)
    assert builder.broken(tmp_path) == []


# Jobs that run alone


def suspect(builder: LedgerBuilder, kind: str = "quick"):
    row = builder.enqueue(kind)
    for _ in range(2):
        builder.claim(row, f"w{next(WORKERS)}")
        builder.start(row)
        builder.crash(row)
    return row


@pytest.mark.parametrize(("seconds", "found"), [(MAX_WAIT_OF_SUSPECTS - 1, []), (MAX_WAIT_OF_SUSPECTS + 1, ["I21"])])
def test_a_job_that_runs_alone_waits_for_its_process(seconds, found, tmp_path):
    builder = sparse()
    row = suspect(builder)
    builder.wait(seconds)
    builder.finish(row, worker="w9999")
    assert builder.broken(tmp_path) == found


def test_a_limited_job_that_runs_alone_waits_for_its_process(tmp_path):
    builder = sparse()
    row = suspect(builder, "limited_2")
    builder.wait(MAX_WAIT_OF_SUSPECTS - 1)
    builder.finish(row, worker="w9999")
    assert builder.broken(tmp_path) == []


def test_many_jobs_that_run_alone_wait_for_each_other(tmp_path):
    builder = sparse()
    rows = [suspect(builder) for _ in range(FEW_SUSPECTS + 2)]
    builder.wait(MAX_WAIT_OF_SUSPECTS * 2)
    for row in rows:
        builder.finish(row, worker=f"w{next(WORKERS)}")
    assert builder.broken(tmp_path) == []


# Limits


def held(builder: LedgerBuilder, kind: str, number: int):
    rows = [builder.enqueue(kind) for _ in range(number)]
    for row in rows:
        builder.claim(row, f"w{next(WORKERS)}")
        builder.start(row)
    return rows


def test_a_limited_job_waits_while_its_limit_is_full(tmp_path):
    builder = sparse()
    first, second = held(builder, "limited_2", 2)
    row = builder.enqueue("limited_2")
    builder.wait(MAX_WAIT * 3)
    builder.complete(first)
    builder.complete(second)
    builder.finish(row, worker="w9999")
    assert builder.broken(tmp_path) == []


def test_a_limited_job_that_waits_though_there_is_room(tmp_path):
    builder = sparse()
    [first] = held(builder, "limited_2", 1)
    row = builder.enqueue("limited_2")
    builder.wait(MAX_WAIT + 1)
    builder.complete(first)
    builder.finish(row, worker="w9999")
    assert builder.broken(tmp_path) == ["I21"]


def test_a_limited_job_that_is_left_when_there_is_room_again(tmp_path):
    builder = sparse()
    first, second = held(builder, "limited_2", 2)
    row = builder.enqueue("limited_2")
    builder.wait(60)
    builder.complete(first)
    builder.complete(second)
    builder.wait(MAX_WAIT + 1)
    builder.finish(row, worker="w9999")
    assert builder.broken(tmp_path) == ["I21"]


def test_a_limited_job_that_had_room_before_others_took_it(tmp_path):
    builder = sparse()
    row = builder.enqueue("limited_1")
    builder.wait(MAX_WAIT + 1)
    builder.finish(builder.enqueue("limited_1"))
    builder.finish(row)
    assert "I21" in builder.broken(tmp_path)


def test_a_job_whose_limit_was_removed_waits_until_workers_have_learnt_of_it(tmp_path):
    builder = sparse()
    builder.limit("changing", 1)
    [first] = held(builder, "changing", 1)
    row = builder.enqueue("changing")
    builder.limit("changing", None)
    builder.wait(LIMIT_CHANGE_TIME)
    builder.finish(row, worker="w9999")
    builder.complete(first)
    assert builder.broken(tmp_path) == []


def test_a_job_under_a_limit_that_was_removed_long_ago(tmp_path):
    builder = sparse()
    builder.limit("changing", 1)
    [first] = held(builder, "changing", 1)
    row = builder.enqueue("changing")
    builder.limit("changing", None)
    builder.wait(LIMIT_CHANGE_TIME + MAX_WAIT + 1)
    builder.finish(row, worker="w9999")
    builder.complete(first)
    assert builder.broken(tmp_path) == ["I21"]


def test_a_rate_keeps_jobs_waiting(tmp_path):
    builder = sparse()
    builder.limit("changing", None, rate=True)
    row = builder.enqueue("changing")
    builder.wait(LIMIT_CHANGE_TIME + MAX_WAIT + 1)
    builder.finish(row)
    assert builder.broken(tmp_path) == []
