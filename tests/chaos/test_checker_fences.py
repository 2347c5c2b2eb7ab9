"""I4 the last claim settles the job, I5 one run per claim, I6 a stale holder writes nothing."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder, Row


def started(builder: LedgerBuilder, worker: str = "w1") -> Row:
    row = builder.enqueue()
    builder.claim(row, worker)
    builder.start(row)
    return row


# I4


@pytest.mark.parametrize("fence", [0, 1])
def test_a_fence_that_does_not_grow(fence, tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.crash(row)
    builder.claim(row, "w2", fence=fence)
    builder.start(row)
    builder.complete(row)
    assert "I4" in builder.broken(tmp_path)


def test_a_fence_that_changes_without_a_claim(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.crash(row, fence=0)
    builder.finish(row, worker="w2")
    assert "I4" in builder.broken(tmp_path)


@pytest.mark.parametrize("stale", [{"claim": "c1"}, {"worker": "w1"}, {"fence": 1}])
def test_a_job_settled_by_an_older_claim(stale, tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.crash(row)
    builder.claim(row, "w2")
    builder.start(row)
    builder.complete(row, **stale)
    assert "I4" in builder.broken(tmp_path)


def test_a_job_settled_without_any_claim(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.remove(row)
    builder.settle(row, "completed", output=builder.output_of(row))
    assert "I4" in builder.broken(tmp_path)


def test_a_job_that_completed_without_a_claim(tmp_path):
    builder = LedgerBuilder()
    builder.complete(started(builder), claim=None)
    assert builder.broken(tmp_path) == ["I4"]


def test_a_canceled_job_keeps_its_fence(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.call("cancel", job=row.id, reply=True)
    builder.remove(row)
    builder.settle(row, "canceled", claim=None, fence=0)
    assert builder.broken(tmp_path) == ["I4"]


# I5


def test_two_workers_under_one_fence(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.start(row, worker="w2")
    builder.complete(row)
    assert builder.broken(tmp_path) == ["I5"]


def test_one_worker_twice_under_one_fence(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.start(row)
    builder.complete(row)
    assert builder.broken(tmp_path) == ["I5"]


def test_a_run_that_was_never_claimed(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.start(row, fence=2)
    assert builder.broken(tmp_path) == ["I5"]


@pytest.mark.parametrize("crash", ["server_stop", "server_kill"])
def test_a_crash_of_the_server_may_undo_a_claim(crash, tmp_path):
    """The claim was answered and not yet durable: its record is gone as well, and the next one gets the same fence."""
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.start(row, worker="w1", fence=1)
    builder.fault(crash, 1.0)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == []


def test_it_may_be_the_same_worker_that_gets_it_again(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.start(row, worker="w1", fence=1)
    builder.fault("server_kill")
    builder.finish(row, worker="w1")
    assert builder.broken(tmp_path) == []


def test_a_frozen_process_may_begin_long_after_its_claim_was_undone(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.fault("server_kill")
    builder.finish(row, worker="w2")
    builder.wait(10)
    builder.start(row, worker="w1")
    assert builder.broken(tmp_path) == []


def test_an_undone_claim_may_have_no_successor(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.start(row, worker="w1", fence=1)
    builder.fault("server_stop")
    builder.cancel(row)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize("fault", ["end_sessions", "kill_child"])
def test_no_other_fault_undoes_claims(fault, tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.start(row, worker="w1", fence=1)
    builder.fault(fault)
    builder.finish(row, worker="w2")
    assert builder.broken(tmp_path) == ["I5"]


def test_a_crash_excuses_only_jobs_that_waited_then(tmp_path):
    builder = LedgerBuilder()
    builder.fault("server_kill")
    builder.wait(1)
    row = started(builder)
    builder.start(row, worker="w2")
    builder.complete(row)
    builder.fault("server_kill")
    assert builder.broken(tmp_path) == ["I5"]


# I6


@pytest.mark.parametrize("override", [{"fence": 1}, {"worker": "w1"}, {"n": 99}])
def test_an_output_that_another_run_made(override, tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.crash(row)
    builder.claim(row, "w2")
    builder.start(row)
    builder.complete(row, output=builder.output_of(row, **override))
    assert builder.broken(tmp_path) == ["I6"]


@pytest.mark.parametrize("output", [None, "words", {}])
def test_an_output_that_no_handler_made(output, tmp_path):
    builder = LedgerBuilder()
    builder.complete(started(builder), output=output)
    assert builder.broken(tmp_path) == ["I6"]


def test_an_output_that_an_older_run_added(tmp_path):
    builder = LedgerBuilder()
    row = started(builder)
    builder.complete(row)
    builder.move(row, output=builder.output_of(row, fence=0))
    assert builder.broken(tmp_path) == ["I6"]


def test_an_effect_of_an_older_run(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue("atomic")
    builder.claim(row)
    builder.start(row)
    builder.crash(row)
    builder.finish(row)
    builder.effect(row, fence=1)
    assert builder.broken(tmp_path) == ["I6", "I17"]
