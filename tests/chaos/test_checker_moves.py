"""I7 only legal moves, I13 attempts and crashes are counted."""

from __future__ import annotations

import pytest

from tenure.model.states import FIRST, LEGAL_MOVES, LIVE, State
from tests.chaos.histories import Book, Row


def begun(book: Book, **row: object) -> Row:
    made = book.enqueue(**row)
    book.claim(made)
    book.start(made)
    return made


# I7


@pytest.mark.parametrize("state", sorted(LIVE - FIRST))
def test_a_state_in_which_nothing_begins(state, tmp_path):
    book = Book()
    book.done()
    book.cancel(book.enqueue(state=str(state)))
    assert book.broken(tmp_path) == ["I7"]


LIVE_PAIRS = [(before, after) for before in sorted(LIVE) for after in sorted(LIVE) if before != after]


@pytest.mark.parametrize(("before", "after"), LIVE_PAIRS)
def test_moves_are_judged_by_the_table(before, after, tmp_path):
    book = Book()
    book.done()
    row = book.enqueue(state=str(before))
    book.move(row, state=str(after))
    book.cancel(row)
    assert ("I7" in book.broken(tmp_path)) == (before not in FIRST or after not in LEGAL_MOVES[before])


@pytest.mark.parametrize("before", sorted(LIVE - {State.RUNNING}))
def test_only_what_runs_completes(before, tmp_path):
    book = Book()
    row = begun(book)
    row.state = str(before)
    book.moves[-1] = book.moves[-1]._replace(state=row.state)
    book.complete(row)
    assert "I7" in book.broken(tmp_path)


def test_a_claim_on_what_another_holds(tmp_path):
    book = Book()
    row = begun(book)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I7"]


def test_a_job_that_is_live_and_finished(tmp_path):
    book = Book()
    row = begun(book)
    book.settle(row, "completed", output=book.made(row))
    assert book.broken(tmp_path) == ["I7"]


def test_history_keeps_what_is_finished(tmp_path):
    book = Book()
    row = begun(book)
    book.leave(row)
    book.settle(row, "retry")
    assert "I7" in book.broken(tmp_path)


@pytest.mark.parametrize("state", ["pending", "running", "dead_letter"])
def test_a_live_row_that_goes_without_being_asked(state, tmp_path):
    book = Book()
    book.done()
    row = begun(book)
    if state != "running":
        book.hand_back(row, state=state)
    book.leave(row)
    assert "I7" in book.broken(tmp_path)


def test_a_finished_row_that_goes_without_being_asked(tmp_path):
    book = Book()
    book.leave(book.finish(book.enqueue(answer="unknown")))
    assert book.broken(tmp_path) == ["I7"]


def test_a_job_that_nobody_canceled(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.leave(row)
    book.settle(row, "canceled")
    assert book.broken(tmp_path) == ["I7"]


# I13


def test_more_attempts_than_allowed(tmp_path):
    book = Book()
    row = begun(book, max_attempts=1)
    book.fail(row, state="retry")
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]


@pytest.mark.parametrize("attempt", [0, 2])
def test_a_grant_is_one_attempt(attempt, tmp_path):
    book = Book()
    row = book.enqueue()
    book.claim(row, attempt=attempt)
    book.start(row)
    book.complete(row)
    assert book.broken(tmp_path) == ["I13"]


def test_a_job_does_not_begin_in_the_middle(tmp_path):
    book = Book()
    book.finish(book.enqueue(attempt=1))
    assert book.broken(tmp_path) == ["I13"]


@pytest.mark.parametrize("how", [Book.crash, Book.hand_back, Book.snooze])
def test_an_attempt_spent_by_a_run_that_did_not_end_by_itself(how, tmp_path):
    book = Book()
    row = begun(book)
    how(book, row, attempt=1)
    if row.state == "scheduled":
        book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]


def test_an_attempt_that_failed_is_spent(tmp_path):
    book = Book()
    row = begun(book)
    book.fail(row, attempt=0)
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]


def test_an_attempt_that_goes_while_nothing_runs(tmp_path):
    book = Book()
    row = book.enqueue(state="scheduled")
    book.promote(row, attempt=1)
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]


def test_an_end_is_no_attempt_of_its_own(tmp_path):
    book = Book()
    book.complete(begun(book), attempt=2)
    assert book.broken(tmp_path) == ["I13"]


@pytest.mark.parametrize("crashes", [0, 2])
def test_a_grant_is_no_crash(crashes, tmp_path):
    book = Book()
    row = begun(book)
    book.crash(row)
    book.claim(row, crashes=crashes)
    book.start(row)
    book.complete(row)
    assert book.broken(tmp_path) == ["I13"]


def test_one_crash_is_counted_once(tmp_path):
    book = Book()
    row = begun(book)
    book.crash(row, crashes=2)
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]


def test_a_job_that_was_in_all_the_crashes_it_may_be_in_runs_no_more(tmp_path):
    book = Book()
    book.set(concurrency=9)
    row = begun(book)
    for _ in range(2):
        book.crash(row)
        book.claim(row)
        book.start(row)
    book.crash(row, state="pending")
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]


def test_more_crashes_than_there_may_be(tmp_path):
    book = Book()
    book.set(max_crashes=1)
    row = begun(book)
    book.crash(row, state="dead_letter")
    book.replay(row, crashes=1)
    book.claim(row)
    book.start(row)
    book.crash(row)
    assert book.broken(tmp_path) == ["I13"]


def test_a_replayed_job_begins_anew(tmp_path):
    book = Book()
    row = begun(book, max_attempts=2)
    book.fail(row, state="dead_letter")
    book.replay(row, attempt=1)
    book.finish(row)
    assert book.broken(tmp_path) == ["I13"]
