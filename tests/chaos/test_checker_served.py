"""I21 no job waits that could run."""

from __future__ import annotations

from itertools import count

import pytest

from tenure.chaos.invariants.served import FEW_SUSPECTS, LEARNT, OF_SUSPECTS, PATIENCE
from tests.chaos.histories import Book

WORKERS = count(1)


def sparse(few: int = 3) -> Book:
    book = Book()
    book.set(few=few, concurrency=10)
    return book


def test_a_job_that_waits_though_all_others_are_idle(tmp_path):
    """A job below the cursors, which only the full sweep finds."""
    book = sparse()
    row = book.enqueue()
    book.wait(PATIENCE + 1)
    book.finish(row)
    assert book.broken(tmp_path) == ["I21"]


def test_a_job_that_is_granted_soon(tmp_path):
    book = sparse()
    row = book.enqueue()
    book.wait(PATIENCE - 1)
    book.finish(row)
    assert book.broken(tmp_path) == []


def test_a_job_that_is_never_granted(tmp_path):
    book = sparse()
    book.enqueue()
    book.done()
    book.set(drained=False)
    assert book.broken(tmp_path) == ["I14", "I21"]


def test_a_job_that_is_canceled_after_a_long_wait(tmp_path):
    book = sparse()
    row = book.enqueue()
    book.done()
    book.wait(PATIENCE + 1)
    book.cancel(row)
    assert book.broken(tmp_path) == ["I21"]


def test_jobs_of_a_long_queue_wait(tmp_path):
    book = sparse(few=3)
    rows = [book.enqueue() for _ in range(6)]
    book.wait(PATIENCE * 3)
    for row in rows:
        book.finish(row)
    assert book.broken(tmp_path) == []


def test_a_job_that_is_left_when_the_queue_has_become_short(tmp_path):
    book = sparse(few=3)
    first, *rows = [book.enqueue() for _ in range(6)]
    book.wait(PATIENCE * 3)
    for row in rows:
        book.finish(row)
    book.wait(PATIENCE + 1)
    book.finish(first)
    assert "I21" in book.broken(tmp_path)


def test_a_job_that_waited_before_the_queue_became_long(tmp_path):
    book = sparse(few=3)
    first = book.enqueue()
    book.wait(PATIENCE + 1)
    rows = [book.enqueue() for _ in range(6)]
    for row in (first, *rows):
        book.finish(row)
    assert "I21" in book.broken(tmp_path)


@pytest.mark.parametrize(("fault", "found"), [("silence", []), ("fill_notify", ["I21"]), ("change_limits", ["I21"])])
def test_a_struck_network_is_an_excuse_and_a_full_notify_queue_is_not(fault, found, tmp_path):
    book = sparse()
    row = book.enqueue()
    book.fault(fault, PATIENCE + 1)
    book.finish(row)
    assert book.broken(tmp_path) == found


def test_settings_of_the_database_are_an_excuse_only_when_sessions_end_for_them(tmp_path):
    book = sparse()
    book.fault("hostile_settings", 3 * PATIENCE)
    began, ended = book.faults[0].began, book.faults[0].ended
    book.now = began
    book.finish(book.enqueue())
    late = book.enqueue()
    book.now = began + PATIENCE + 8
    book.finish(late)
    book.now = ended + 1
    book.done()
    assert book.broken(tmp_path) == ["I21"]


def test_a_caller_whose_transaction_ends_late_is_not_waited_for(tmp_path):
    book = sparse()
    row = book.enqueue()
    book.wait(PATIENCE * 2)
    book.calls[0] = book.calls[0]._replace(ended=book.now)
    book.finish(row)
    assert book.broken(tmp_path) == []


# Jobs that run alone


def suspect(book: Book, kind: str = "quick"):
    row = book.enqueue(kind)
    for _ in range(2):
        book.claim(row, f"w{next(WORKERS)}")
        book.start(row)
        book.crash(row)
    return row


@pytest.mark.parametrize(("seconds", "found"), [(OF_SUSPECTS - 1, []), (OF_SUSPECTS + 1, ["I21"])])
def test_a_job_that_runs_alone_waits_for_its_process(seconds, found, tmp_path):
    book = sparse()
    row = suspect(book)
    book.wait(seconds)
    book.finish(row, worker="w9999")
    assert book.broken(tmp_path) == found


def test_a_limited_job_that_runs_alone_waits_for_its_process(tmp_path):
    book = sparse()
    row = suspect(book, "limited_2")
    book.wait(OF_SUSPECTS - 1)
    book.finish(row, worker="w9999")
    assert book.broken(tmp_path) == []


def test_many_jobs_that_run_alone_wait_for_each_other(tmp_path):
    book = sparse()
    rows = [suspect(book) for _ in range(FEW_SUSPECTS + 2)]
    book.wait(OF_SUSPECTS * 2)
    for row in rows:
        book.finish(row, worker=f"w{next(WORKERS)}")
    assert book.broken(tmp_path) == []


# Limits


def held(book: Book, kind: str, number: int):
    rows = [book.enqueue(kind) for _ in range(number)]
    for row in rows:
        book.claim(row, f"w{next(WORKERS)}")
        book.start(row)
    return rows


def test_a_limited_job_waits_while_its_limit_is_full(tmp_path):
    book = sparse()
    first, second = held(book, "limited_2", 2)
    row = book.enqueue("limited_2")
    book.wait(PATIENCE * 3)
    book.complete(first)
    book.complete(second)
    book.finish(row, worker="w9999")
    assert book.broken(tmp_path) == []


def test_a_limited_job_that_waits_though_there_is_room(tmp_path):
    book = sparse()
    [first] = held(book, "limited_2", 1)
    row = book.enqueue("limited_2")
    book.wait(PATIENCE + 1)
    book.complete(first)
    book.finish(row, worker="w9999")
    assert book.broken(tmp_path) == ["I21"]


def test_a_limited_job_that_is_left_when_there_is_room_again(tmp_path):
    book = sparse()
    first, second = held(book, "limited_2", 2)
    row = book.enqueue("limited_2")
    book.wait(60)
    book.complete(first)
    book.complete(second)
    book.wait(PATIENCE + 1)
    book.finish(row, worker="w9999")
    assert book.broken(tmp_path) == ["I21"]


def test_a_limited_job_that_had_room_before_others_took_it(tmp_path):
    book = sparse()
    row = book.enqueue("limited_1")
    book.wait(PATIENCE + 1)
    book.finish(book.enqueue("limited_1"))
    book.finish(row)
    assert "I21" in book.broken(tmp_path)


def test_a_job_whose_limit_was_removed_waits_until_workers_have_learnt_of_it(tmp_path):
    book = sparse()
    book.limit("changing", 1)
    [first] = held(book, "changing", 1)
    row = book.enqueue("changing")
    book.limit("changing", None)
    book.wait(LEARNT)
    book.finish(row, worker="w9999")
    book.complete(first)
    assert book.broken(tmp_path) == []


def test_a_job_that_stands_under_a_limit_that_was_removed_long_ago(tmp_path):
    book = sparse()
    book.limit("changing", 1)
    [first] = held(book, "changing", 1)
    row = book.enqueue("changing")
    book.limit("changing", None)
    book.wait(LEARNT + PATIENCE + 1)
    book.finish(row, worker="w9999")
    book.complete(first)
    assert book.broken(tmp_path) == ["I21"]


def test_a_rate_keeps_jobs_waiting(tmp_path):
    book = sparse()
    book.limit("changing", None, rate=True)
    row = book.enqueue("changing")
    book.wait(LEARNT + PATIENCE + 1)
    book.finish(row)
    assert book.broken(tmp_path) == []
