"""I0 a record with gaps proves nothing, I16 every change is audited."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.chaos.checker import check
from tenure.chaos.invariants.record import ENOUGH_TRIES
from tenure.chaos.ledger import ClientCall, JobRequest
from tests.chaos.builder import BEGAN, LedgerBuilder, Row

# The record of the campaign


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


# The audit log

ACTOR = "campaign-client-0"


@pytest.fixture
def builder() -> LedgerBuilder:
    builder = LedgerBuilder()
    builder.done()
    return builder


def changed(builder: LedgerBuilder, **call: Any) -> Row:
    """A job that a client cancels through the web server."""
    row = builder.enqueue()
    audit(builder, row)
    builder.call("cancel", **{"job": row.id, "reply": True, "actor": ACTOR} | call)
    builder.remove(row)
    builder.settle(row, "canceled", claim=None)
    return row


def audit(builder: LedgerBuilder, row: Row, **overrides: Any) -> None:
    """Both entries of a call."""
    request = f"r{len(builder.audit)}"
    builder.entry(request, row.id, **overrides)
    builder.entry(request, row.id, **{"phase": "finished", "status": 200} | overrides)


def test_a_recorded_change(builder, tmp_path):
    changed(builder)
    assert builder.broken(tmp_path) == []


def test_a_change_without_an_entry(builder, tmp_path):
    changed(builder)
    builder.audit.clear()
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_by_another_actor(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(actor="campaign-client-1") for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_of_another_job(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(subject="job-9") for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_another_change(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(action="delete_job") for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_an_entry_long_after_the_change(builder, tmp_path):
    changed(builder)
    builder.audit = [entry._replace(at=entry.at + 60) for entry in builder.audit]
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_that_is_recorded_as_refused(builder, tmp_path):
    changed(builder)
    builder.audit[-1] = builder.audit[-1]._replace(status=409)
    assert builder.broken(tmp_path) == ["I16"]


def test_a_change_whose_server_was_killed_before_the_second_entry(builder, tmp_path):
    changed(builder)
    builder.audit.pop()
    assert builder.broken(tmp_path) == []


def test_an_end_without_a_beginning(builder, tmp_path):
    changed(builder)
    row = builder.done()
    builder.entry("r9", row.id, phase="finished", status=409)
    assert builder.broken(tmp_path) == ["I16"]


def test_an_entry_of_a_call_that_was_not_made(builder, tmp_path):
    changed(builder)
    audit(builder, builder.done())
    assert builder.broken(tmp_path) == ["I16"]


def test_an_entry_before_its_call(builder, tmp_path):
    changed(builder)
    row = builder.done()
    audit(builder, row)
    builder.wait(60)
    builder.call("cancel", "refused", job=row.id, actor=ACTOR)
    assert builder.broken(tmp_path) == ["I16"]


@pytest.mark.parametrize("answer", ["refused", "unknown"])
def test_calls_that_may_not_have_reached_the_server(builder, tmp_path, answer):
    changed(builder)
    builder.call("cancel", answer, job=builder.done().id, actor=ACTOR)
    assert builder.broken(tmp_path) == []


def test_entries_of_people_who_look_at_the_campaign(builder, tmp_path):
    changed(builder)
    audit(builder, builder.done(), actor="another")
    assert builder.broken(tmp_path) == []


def test_changes_that_do_not_go_through_the_web_server(builder, tmp_path):
    builder.cancel(builder.enqueue())
    assert builder.broken(tmp_path) == []


def test_an_entry_that_a_failover_lost(builder, tmp_path):
    builder.fault("failover", seconds=1)
    changed(builder)
    builder.audit.clear()
    builder.faults = [fault._replace(ended=builder.now) for fault in builder.faults]
    assert "I16" not in builder.broken(tmp_path)
