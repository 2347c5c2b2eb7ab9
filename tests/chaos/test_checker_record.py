"""I0: a record with gaps proves nothing."""

from __future__ import annotations

import pytest

from tenure.chaos.checker import check
from tenure.chaos.invariants.whole import ENOUGH_TRIES
from tenure.chaos.ledger import Call, Offer
from tests.chaos.histories import BEGAN, Book


def test_an_empty_record_proves_nothing(tmp_path):
    assert Book().broken(tmp_path) == ["I0"]


def test_jobs_without_a_single_run_prove_nothing(tmp_path):
    book = Book()
    book.cancel(book.enqueue())
    assert book.broken(tmp_path) == ["I0"]


def test_a_job_that_nobody_saw_coming(tmp_path):
    book = Book()
    book.done()
    del book.moves[0]
    assert "I0" in book.broken(tmp_path)


def test_a_job_that_was_never_seen_but_stands(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.cancel(row)
    book.moves = [move for move in book.moves if move.job != row.id]
    assert book.broken(tmp_path) == ["I0"]


def test_a_history_row_of_a_job_that_was_never_live(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.cancel(row)
    book.moves = [move for move in book.moves if move.job != row.id or move.relation == "history"]
    assert book.broken(tmp_path) == ["I0"]


def test_a_move_that_is_missing(tmp_path):
    book = Book()
    row = book.enqueue(max_attempts=5)
    book.claim(row)
    book.start(row)
    book.fail(row)
    book.promote(row)
    book.finish(row)
    book.moves = [move for move in book.moves if move.state != "retry"]
    assert "I0" in book.broken(tmp_path)


def test_moves_out_of_order(tmp_path):
    book = Book()
    book.done()
    book.done()
    book.moves[4:8], book.moves[0:4] = book.moves[0:4], book.moves[4:8]
    assert book.broken(tmp_path) == ["I0"]


@pytest.mark.parametrize("otherwise", [{"state": "failed"}, {"fence": 2}, {"claim": "c9"}])
def test_a_job_that_stands_otherwise_than_it_was_last_seen(otherwise, tmp_path):
    book = Book()
    book.stands(book.done(), **otherwise)
    assert book.broken(tmp_path) == ["I0"]


def test_a_deleted_job_that_stands(tmp_path):
    book = Book()
    row = book.done()
    book.stands(row)
    book.delete(row)
    assert book.broken(tmp_path) == ["I0"]


def test_a_job_that_vanished_without_being_seen(tmp_path):
    """Nobody was told of it, so it is no lost promise; but the record cannot be right."""
    book = Book()
    book.done()
    book.lost.add(book.finish(book.enqueue(answer="unknown")).id)
    assert book.broken(tmp_path) == ["I0"]


def test_a_completed_job_that_no_handler_began(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.claim(row)
    book.complete(row)
    assert book.broken(tmp_path) == ["I0"]


def test_a_handler_of_an_unknown_job(tmp_path):
    book = Book()
    row = book.done()
    book.start(row, job="somebody")
    assert book.broken(tmp_path) == ["I0"]


def test_half_a_line_of_a_killed_process_is_no_gap(tmp_path):
    book = Book()
    book.done()
    ledger = book.ledger(tmp_path)
    with ledger.write("runs-101-w1.jsonl") as file:
        file.write('["started",1000')
    assert check(ledger).ok


@pytest.mark.parametrize(
    "call",
    [
        Call("enqueue", BEGAN, BEGAN, "perhaps"),
        Call("enqueue", BEGAN, BEGAN, "ok", offers=(Offer(99, "quick", None),)),
        Call("dance", BEGAN, BEGAN, "ok", job="job-1"),
        Call("cancel", BEGAN, BEGAN, "ok"),
    ],
    ids=lambda call: f"{call.verb} {call.answer}",
)
def test_a_call_that_cannot_be_read(call, tmp_path):
    book = Book()
    book.done()
    book.calls.append(call)
    assert book.broken(tmp_path) == ["I0"]


def test_a_number_that_was_given_twice(tmp_path):
    book = Book()
    row = book.done()
    book.offer(n=row.n, answer="unknown")
    assert book.broken(tmp_path) == ["I0"]


def test_a_fault_that_ended_before_it_began(tmp_path):
    book = Book()
    book.done()
    book.fault("kill_child", ended=BEGAN)
    assert book.broken(tmp_path) == ["I0"]


def test_a_fault_at_work_after_all_was_healed(tmp_path):
    book = Book()
    book.done()
    book.fault("stop_child", ended=book.course.healed + 1)
    assert book.broken(tmp_path) == ["I0"]


def test_a_kind_of_fault_that_never_came_about(tmp_path):
    book = Book()
    book.done()
    for _ in range(ENOUGH_TRIES):
        book.fault("server_kill", done=False, detail="the server is not ours")
    assert book.broken(tmp_path) == ["I0"]
