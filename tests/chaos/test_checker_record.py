"""I0: a record with gaps proves nothing."""

from __future__ import annotations

import pytest

from tenure.chaos.checker import check
from tenure.chaos.invariants.record import ENOUGH_TRIES
from tenure.chaos.ledger import ClientCall, JobRequest
from tests.chaos.builder import BEGAN, LedgerBuilder


def test_an_empty_record_proves_nothing(tmp_path):
    assert LedgerBuilder().broken(tmp_path) == ["I0"]


def test_jobs_without_a_single_run_prove_nothing(tmp_path):
    builder = LedgerBuilder()
    builder.cancel(builder.enqueue())
    assert builder.broken(tmp_path) == ["I0"]


def test_a_job_whose_insertion_was_not_recorded(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    del builder.moves[0]
    assert "I0" in builder.broken(tmp_path)


def test_a_job_that_was_never_recorded_but_exists(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.cancel(row)
    builder.moves = [move for move in builder.moves if move.job != row.id]
    assert builder.broken(tmp_path) == ["I0"]


def test_a_history_row_of_a_job_that_was_never_live(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.cancel(row)
    builder.moves = [move for move in builder.moves if move.job != row.id or move.relation == "history"]
    assert builder.broken(tmp_path) == ["I0"]


def test_a_move_that_is_missing(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue(max_attempts=5)
    builder.claim(row)
    builder.start(row)
    builder.fail(row)
    builder.promote(row)
    builder.finish(row)
    builder.moves = [move for move in builder.moves if move.state != "retry"]
    assert "I0" in builder.broken(tmp_path)


def test_moves_out_of_order(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.done()
    builder.moves[4:8], builder.moves[0:4] = builder.moves[0:4], builder.moves[4:8]
    assert builder.broken(tmp_path) == ["I0"]


@pytest.mark.parametrize("otherwise", [{"state": "failed"}, {"fence": 2}, {"claim": "c9"}])
def test_a_job_that_differs_from_its_last_record(otherwise, tmp_path):
    builder = LedgerBuilder()
    builder.set_final(builder.done(), **otherwise)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_deleted_job_that_exists(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.set_final(row)
    builder.delete(row)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_job_that_disappeared_without_a_record(tmp_path):
    """Its id was never returned, so no promise is broken; but the record cannot be right."""
    builder = LedgerBuilder()
    builder.done()
    builder.lost.add(builder.finish(builder.enqueue(answer="unknown")).id)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_completed_job_that_no_handler_began(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    row = builder.enqueue()
    builder.claim(row)
    builder.complete(row)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_handler_of_an_unknown_job(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.start(row, job="unknown")
    assert builder.broken(tmp_path) == ["I0"]


def test_half_a_line_of_a_killed_process_is_not_a_gap(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    ledger = builder.ledger(tmp_path)
    with ledger.write("runs-101-w1.jsonl") as file:
        file.write('["started",1000')
    assert check(ledger).ok


@pytest.mark.parametrize(
    "call",
    [
        ClientCall("enqueue", BEGAN, BEGAN, "perhaps"),
        ClientCall("enqueue", BEGAN, BEGAN, "ok", requests=(JobRequest(99, "quick", None),)),
        ClientCall("dance", BEGAN, BEGAN, "ok", job="job-1"),
        ClientCall("cancel", BEGAN, BEGAN, "ok"),
    ],
    ids=lambda call: f"{call.verb} {call.answer}",
)
def test_a_call_that_cannot_be_read(call, tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.calls.append(call)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_number_that_was_given_twice(tmp_path):
    builder = LedgerBuilder()
    row = builder.done()
    builder.request(n=row.n, answer="unknown")
    assert builder.broken(tmp_path) == ["I0"]


def test_a_fault_that_ended_before_it_began(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.fault("kill_child", ended=BEGAN)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_fault_that_is_active_after_the_faults_were_over(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.fault("stop_child", ended=builder.campaign.healed + 1)
    assert builder.broken(tmp_path) == ["I0"]


def test_a_kind_of_fault_that_was_never_done(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    for _ in range(ENOUGH_TRIES):
        builder.fault("server_kill", done=False, detail="the server is not ours")
    assert builder.broken(tmp_path) == ["I0"]
