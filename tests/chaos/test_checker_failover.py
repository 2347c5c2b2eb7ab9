"""After a failover to a lagging standby: only what it never received is excused."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder

LAG = 2.0


def failed_over() -> tuple[LedgerBuilder, float]:
    """A builder, and a moment in the middle of what was lost."""
    builder = LedgerBuilder()
    builder.done()
    builder.wait(10)
    moment = builder.now + LAG / 2
    builder.fault("failover", LAG)
    return builder, moment


@pytest.mark.parametrize(("at", "found"), [(0.0, []), (-5.0, ["I1"]), (5.0, ["I1"])])
def test_a_job_accepted_while_the_standby_lagged_may_be_lost(at, found, tmp_path):
    builder, moment = failed_over()
    builder.now = moment + at
    builder.request(job="lost")
    assert builder.broken(tmp_path) == found


def test_a_job_that_exists_and_is_deleted_later_is_not_excused(tmp_path):
    builder, moment = failed_over()
    builder.now = moment
    row = builder.enqueue()
    builder.remove(row)
    assert builder.broken(tmp_path) == ["I1", "I7"]


@pytest.mark.parametrize(("at", "found"), [(0.0, []), (LAG, []), (-5.0, ["I0", "I1"]), (30.0, ["I0", "I1"])])
def test_a_job_that_was_lost_may_have_run_meanwhile(at, found, tmp_path):
    builder, moment = failed_over()
    builder.now = moment + at if abs(at) > LAG else moment
    row = builder.enqueue()
    builder.claim(row)
    builder.now = moment + at
    builder.start(row)
    del builder.rows[row.id]
    builder.moves = [move for move in builder.moves if move.job != row.id]
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("at", "found"), [(0.0, []), (5.0, ["I15"])])
def test_a_result_seen_while_the_standby_lagged_may_change(at, found, tmp_path):
    builder, moment = failed_over()
    row = builder.enqueue()
    builder.now = moment + at
    builder.call("result", job=row.id, reply=["completed", {"n": row.n, "fence": 1, "worker": "w7"}])
    builder.now = moment + 8
    builder.finish(row)
    assert builder.broken(tmp_path) == found


def test_a_claim_that_was_lost_may_be_repeated_under_the_same_fence(tmp_path):
    builder, moment = failed_over()
    builder.now = moment - 3
    row = builder.enqueue()
    builder.now = moment
    builder.start(row, worker="w2", fence=1)
    builder.now = moment + 5
    builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_claim_that_was_lost_with_all_that_came_before_it(tmp_path):
    """The promotion of the job was lost as well, and its own worker ran it twice."""
    builder, moment = failed_over()
    builder.now = moment - 3
    row = builder.enqueue(state="scheduled")
    builder.now = moment
    builder.run("started", row, worker="w1", fence=1)
    builder.run("returned", row, worker="w1", fence=1)
    builder.now = moment + 5
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == []


def test_a_run_twice_that_no_failover_explains(tmp_path):
    builder, moment = failed_over()
    builder.now = moment + 5
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.start(row)
    builder.complete(row)
    assert builder.broken(tmp_path) == ["I5"]


def test_a_settlement_that_was_lost_must_be_noticed_soon(tmp_path):
    builder, moment = failed_over()
    builder.worker("registered")
    builder.now = moment - 3
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.now = moment
    builder.run("returned", row)
    builder.now = moment + 60
    builder.requeue(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I20"]


@pytest.mark.parametrize(
    ("at", "lost", "found"), [(0.0, "last", []), (-5.0, "last", ["I12"]), (5.0, "last", ["I12"]), (0.0, "first", ["I12"])]
)
def test_only_the_last_steps_before_a_failover_may_be_lost(at, lost, found, tmp_path):
    """The run still holds its claim, and completes with more steps than are recorded."""
    builder, moment = failed_over()
    builder.now = moment + at
    row = builder.enqueue("workflow_sequence")
    builder.claim(row)
    builder.start(row)
    if lost == "first":
        builder.ran(row, "a", "lost")
        last = builder.step(row, "b")
    else:
        builder.step(row, "a")
        last = "lost"
        builder.ran(row, "b", last)
    builder.complete(row, output=builder.output_of(row, steps=2, last=last))
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(
    ("at", "ran", "found"), [(0.0, True, []), (-5.0, True, ["I26"]), (5.0, True, ["I26"]), (0.0, False, ["I26"])]
)
def test_only_the_record_of_what_was_undone_may_be_lost(at, ran, found, tmp_path):
    """The run undoes what it did while the old primary answers, and is settled by the new one."""
    builder, moment = failed_over()
    builder.now = moment + at
    row = builder.enqueue("workflow_undone")
    builder.claim(row)
    builder.start(row)
    builder.record(row, "undo x", what="on_rollback")
    builder.run("raised", row)
    if ran:
        builder.ran(row, "(undo) undo x", "lost")
    builder.remove(row)
    builder.settle(row, "failed")
    assert [number for number in builder.broken(tmp_path) if number == "I26"] == found
