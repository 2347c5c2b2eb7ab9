"""I7 only legal state changes, I13 attempts and crashes are counted."""

from __future__ import annotations

import pytest

from tenure.model.states import FIRST, LEGAL_MOVES, LIVE, State
from tests.chaos.builder import LedgerBuilder, Row


def started(builder: LedgerBuilder, **row: object) -> Row:
    made = builder.enqueue(**row)
    builder.claim(made)
    builder.start(made)
    return made


# I7


@pytest.mark.parametrize("state", sorted(LIVE - FIRST))
def test_a_state_in_which_nothing_begins(state, tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.cancel(builder.enqueue(state=str(state)))
    assert builder.broken(tmp_path) == ["I7"]


LIVE_PAIRS = [(before, after) for before in sorted(LIVE) for after in sorted(LIVE) if before != after]


@pytest.mark.parametrize(("before", "after"), LIVE_PAIRS)
def test_moves_are_judged_by_the_table(before, after, tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue(state=str(before))
    builder.move(row, state=str(after))
    builder.cancel(row)
    assert ("I7" in builder.broken(tmp_path)) == (before not in FIRST or after not in LEGAL_MOVES[before])


@pytest.mark.parametrize("before", sorted(LIVE - {State.RUNNING}))
def test_only_what_runs_completes(before, tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    row.state = str(before)
    builder.moves[-1] = builder.moves[-1]._replace(state=row.state)
    builder.complete(row)
    assert "I7" in builder.broken(tmp_path)


def test_a_claim_on_what_another_holds(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I7"]


def test_a_job_that_is_live_and_finished(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.settle(row, "completed", output=builder.output_of(row))
    assert builder.broken(tmp_path) == ["I7"]


def test_history_keeps_what_is_finished(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.remove(row)
    builder.settle(row, "retry")
    assert "I7" in builder.broken(tmp_path)


@pytest.mark.parametrize("state", ["pending", "running", "dead_letter"])
def test_a_live_row_that_is_deleted_without_a_request(state, tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = started(builder)
    if state != "running":
        builder.requeue(row, state=state)
    builder.remove(row)
    assert "I7" in builder.broken(tmp_path)


def test_a_finished_row_that_is_deleted_without_a_request(tmp_path):
    builder = LedgerBuilder()
    builder.remove(builder.finish(builder.enqueue(answer="unknown")))
    assert builder.broken(tmp_path) == ["I7"]


def test_a_job_canceled_without_a_request(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.remove(row)
    builder.settle(row, "canceled")
    assert builder.broken(tmp_path) == ["I7"]


# I13


def test_more_attempts_than_allowed(tmp_path):
    builder = LedgerBuilder()
    row = started(builder, max_attempts=1)
    builder.fail(row, state="retry")
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]


@pytest.mark.parametrize("attempt", [0, 2])
def test_a_claim_is_one_attempt(attempt, tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.claim(row, attempt=attempt)
    builder.start(row)
    builder.complete(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_a_job_does_not_begin_in_the_middle(tmp_path):
    builder = LedgerBuilder()
    builder.finish(builder.enqueue(attempt=1))
    assert builder.broken(tmp_path) == ["I13"]


@pytest.mark.parametrize("how", [LedgerBuilder.crash, LedgerBuilder.requeue, LedgerBuilder.snooze])
def test_an_attempt_spent_by_a_run_that_did_not_end_by_itself(how, tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    how(builder, row, attempt=1)
    if row.state == "scheduled":
        builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_an_attempt_that_failed_is_spent(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.fail(row, attempt=0)
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_an_attempt_that_is_counted_while_nothing_runs(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue(state="scheduled")
    builder.promote(row, attempt=1)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_an_end_does_not_count_as_an_attempt(tmp_path):
    builder = LedgerBuilder()
    builder.complete(started(builder), attempt=2)
    assert builder.broken(tmp_path) == ["I13"]


@pytest.mark.parametrize("crashes", [0, 2])
def test_a_claim_is_not_a_crash(crashes, tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.crash(row)
    builder.claim(row, crashes=crashes)
    builder.start(row)
    builder.complete(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_one_crash_is_counted_once(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.crash(row, crashes=2)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_a_job_with_the_maximum_of_crashes_does_not_run_again(tmp_path):
    builder = LedgerBuilder()
    builder.set(concurrency=9)
    row = started(builder)
    for _ in range(2):
        builder.crash(row)
        builder.claim(row)
        builder.start(row)
    builder.crash(row, state="pending")
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_more_crashes_than_allowed(tmp_path):
    builder = LedgerBuilder()
    builder.set(max_crashes=1)
    row = started(builder)
    builder.crash(row, state="dead_letter")
    builder.replay(row, crashes=1)
    builder.claim(row)
    builder.start(row)
    builder.crash(row)
    assert builder.broken(tmp_path) == ["I13"]


def test_a_replayed_job_has_all_its_attempts(tmp_path):
    builder = LedgerBuilder()
    row = started(builder, max_attempts=2)
    builder.fail(row, state="dead_letter")
    builder.replay(row, attempt=1)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I13"]
