"""I4 the last grant settles, I5 one run for each grant, I6 an old holder writes nothing."""

from __future__ import annotations

import pytest

from tests.chaos.histories import Book, Row


def begun(book: Book, worker: str = "w1") -> Row:
    row = book.enqueue()
    book.claim(row, worker)
    book.start(row)
    return row


# I4


@pytest.mark.parametrize("fence", [0, 1])
def test_a_fence_that_does_not_grow(fence, tmp_path):
    book = Book()
    row = begun(book)
    book.crash(row)
    book.claim(row, "w2", fence=fence)
    book.start(row)
    book.complete(row)
    assert "I4" in book.broken(tmp_path)


def test_a_fence_that_changes_without_a_grant(tmp_path):
    book = Book()
    row = begun(book)
    book.crash(row, fence=0)
    book.finish(row, worker="w2")
    assert "I4" in book.broken(tmp_path)


@pytest.mark.parametrize("stale", [{"claim": "c1"}, {"worker": "w1"}, {"fence": 1}])
def test_a_job_settled_by_an_older_grant(stale, tmp_path):
    book = Book()
    row = begun(book)
    book.crash(row)
    book.claim(row, "w2")
    book.start(row)
    book.complete(row, **stale)
    assert "I4" in book.broken(tmp_path)


def test_a_job_settled_without_any_grant(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.leave(row)
    book.settle(row, "completed", output=book.made(row))
    assert "I4" in book.broken(tmp_path)


def test_a_job_that_completed_without_a_claim(tmp_path):
    book = Book()
    book.complete(begun(book), claim=None)
    assert book.broken(tmp_path) == ["I4"]


def test_a_canceled_job_keeps_its_fence(tmp_path):
    book = Book()
    row = begun(book)
    book.call("cancel", job=row.id, told=True)
    book.leave(row)
    book.settle(row, "canceled", claim=None, fence=0)
    assert book.broken(tmp_path) == ["I4"]


# I5


def test_two_workers_under_one_fence(tmp_path):
    book = Book()
    row = begun(book)
    book.start(row, worker="w2")
    book.complete(row)
    assert book.broken(tmp_path) == ["I5"]


def test_one_worker_twice_under_one_fence(tmp_path):
    book = Book()
    row = begun(book)
    book.start(row)
    book.complete(row)
    assert book.broken(tmp_path) == ["I5"]


def test_a_run_that_was_never_granted(tmp_path):
    book = Book()
    row = book.done()
    book.start(row, fence=2)
    assert book.broken(tmp_path) == ["I5"]


@pytest.mark.parametrize("crash", ["server_stop", "server_kill"])
def test_a_crash_of_the_server_may_take_a_grant_back(crash, tmp_path):
    """The claim was answered and not yet durable: its record is gone as well, and the next one gets the same fence."""
    book = Book()
    row = book.enqueue()
    book.start(row, worker="w1", fence=1)
    book.fault(crash, 1.0)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == []


def test_it_may_be_the_same_worker_that_gets_it_again(tmp_path):
    book = Book()
    row = book.enqueue()
    book.start(row, worker="w1", fence=1)
    book.fault("server_kill")
    book.finish(row, worker="w1")
    assert book.broken(tmp_path) == []


def test_a_frozen_process_may_begin_long_after_its_grant_was_taken_back(tmp_path):
    book = Book()
    row = book.enqueue()
    book.fault("server_kill")
    book.finish(row, worker="w2")
    book.wait(10)
    book.start(row, worker="w1")
    assert book.broken(tmp_path) == []


def test_a_grant_that_was_taken_back_may_have_no_successor(tmp_path):
    book = Book()
    book.done()
    row = book.enqueue()
    book.start(row, worker="w1", fence=1)
    book.fault("server_stop")
    book.cancel(row)
    assert book.broken(tmp_path) == []


@pytest.mark.parametrize("fault", ["end_sessions", "kill_child"])
def test_no_other_fault_takes_grants_back(fault, tmp_path):
    book = Book()
    row = book.enqueue()
    book.start(row, worker="w1", fence=1)
    book.fault(fault)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I5"]


def test_a_crash_excuses_only_those_who_waited_then(tmp_path):
    book = Book()
    book.fault("server_kill")
    book.wait(1)
    row = begun(book)
    book.start(row, worker="w2")
    book.complete(row)
    book.fault("server_kill")
    assert book.broken(tmp_path) == ["I5"]


# I6


@pytest.mark.parametrize("lie", [{"fence": 1}, {"worker": "w1"}, {"n": 99}])
def test_an_output_that_another_run_made(lie, tmp_path):
    book = Book()
    row = begun(book)
    book.crash(row)
    book.claim(row, "w2")
    book.start(row)
    book.complete(row, output=book.made(row, **lie))
    assert book.broken(tmp_path) == ["I6"]


@pytest.mark.parametrize("output", [None, "words", {}])
def test_an_output_that_no_handler_made(output, tmp_path):
    book = Book()
    book.complete(begun(book), output=output)
    assert book.broken(tmp_path) == ["I6"]


def test_an_output_that_an_older_run_added(tmp_path):
    book = Book()
    row = begun(book)
    book.complete(row)
    book.move(row, output=book.made(row, fence=0))
    assert book.broken(tmp_path) == ["I6"]


def test_an_effect_of_an_older_run(tmp_path):
    book = Book()
    row = book.enqueue("atomic")
    book.claim(row)
    book.start(row)
    book.crash(row)
    book.finish(row)
    book.effect(row, fence=1)
    assert book.broken(tmp_path) == ["I6", "I17"]
