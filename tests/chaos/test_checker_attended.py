"""I20 no job is held by nobody."""

from __future__ import annotations

import pytest

from tenure.chaos.invariants.attended import AFTER_REMOVAL, OF_A_DEAD_WORKER, OF_A_LIVE_WORKER
from tests.chaos.histories import Book, Row


def granted(*, started: bool = True) -> tuple[Book, Row]:
    book = Book()
    book.set(concurrency=10)
    for worker in ("w1", "w2"):
        book.worker("registered", worker)
    row = book.enqueue()
    book.claim(row)
    if started:
        book.start(row)
    return book, row


def lives_on(book: Book, seconds: float = 0.0) -> None:
    """The worker runs other jobs meanwhile."""
    until = book.now + seconds
    while book.now < until:
        book.finish(book.enqueue())
        book.wait(1)
    book.finish(book.enqueue())


def test_a_worker_that_is_removed_while_a_job_is_held_under_it(tmp_path):
    """What `return_jobs` did to a row that changed between its snapshot and its lock."""
    book, row = granted()
    book.worker("condemned")
    book.worker("removed")
    book.wait(AFTER_REMOVAL + 1)
    book.crash(row)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I20"]


def test_a_worker_that_is_removed_with_its_last_job(tmp_path):
    book, row = granted()
    book.worker("condemned")
    book.crash(row)
    book.worker("removed")
    book.wait(60)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == []


def test_a_job_that_its_live_worker_never_starts(tmp_path):
    """The answer to the claim was lost, or an error came between the claim and the slots."""
    book, row = granted(started=False)
    lives_on(book, OF_A_LIVE_WORKER + 1)
    book.hand_back(row)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I20"]


def test_a_job_that_is_started_late_but_not_too_late(tmp_path):
    book, row = granted(started=False)
    lives_on(book, OF_A_LIVE_WORKER - 2)
    book.start(row)
    book.complete(row)
    lives_on(book)
    assert book.broken(tmp_path) == []


def test_a_worker_that_is_blocked_by_a_handler_is_waited_for_like_one_that_may_be_dead(tmp_path):
    book, row = granted(started=False)
    book.wait(OF_A_DEAD_WORKER - 1)
    book.start(row)
    book.complete(row)
    lives_on(book)
    assert book.broken(tmp_path) == []


def test_a_run_that_ended_and_is_not_settled_while_its_worker_lives(tmp_path):
    """After a failover that lost the settlement, or when one refused outcome stops all others."""
    book, row = granted()
    book.run("returned", row)
    lives_on(book, OF_A_LIVE_WORKER + 1)
    book.hand_back(row)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I20"]


def test_a_run_that_never_ends_in_a_worker_that_lives(tmp_path):
    book, row = granted()
    lives_on(book, book.course.longest + OF_A_LIVE_WORKER + 1)
    book.hand_back(row)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I20"]


def test_a_run_that_is_still_held_at_the_end(tmp_path):
    book, _row = granted()
    lives_on(book, 60)
    book.set(drained=False, ended=book.now + 5)
    assert book.broken(tmp_path) == ["I14", "I20"]


def test_a_dead_worker_whose_jobs_are_requeued_in_time(tmp_path):
    book, row = granted()
    book.wait(book.course.longest + OF_A_DEAD_WORKER - 1)
    book.worker("condemned")
    book.crash(row)
    book.worker("removed")
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == []


def test_a_dead_worker_whose_jobs_are_requeued_too_late(tmp_path):
    book, row = granted()
    book.wait(book.course.longest + OF_A_DEAD_WORKER + 1)
    book.worker("condemned")
    book.crash(row)
    book.worker("removed")
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == ["I20"]


@pytest.mark.parametrize(
    ("fault", "found"), [("server_stop", []), ("lock_core", []), ("lock_aside", ["I20"]), ("kill_child", ["I20"])]
)
def test_faults_of_the_server_are_an_excuse_and_locks_on_tables_that_no_job_needs_are_not(fault, found, tmp_path):
    book, row = granted()
    book.run("returned", row)
    book.fault(fault, OF_A_DEAD_WORKER + 1)
    book.leave(row)
    book.settle(row, "completed", output=book.made(row))
    lives_on(book)
    assert book.broken(tmp_path) == found


def test_a_fault_is_an_excuse_for_its_time_only(tmp_path):
    book, row = granted()
    book.run("returned", row)
    book.fault("cut", 1.0)
    lives_on(book, OF_A_LIVE_WORKER + 5)
    book.leave(row)
    book.settle(row, "completed", output=book.made(row))
    lives_on(book)
    assert book.broken(tmp_path) == ["I20"]


@pytest.mark.parametrize(("pid", "found"), [(101, []), (102, ["I20"])])
def test_a_process_that_is_stopped_starts_nothing_meanwhile(pid, found, tmp_path):
    book, row = granted(started=False)
    book.fault("stop_child", OF_A_DEAD_WORKER + 5, stopped=(pid,))
    lives_on(book)
    book.hand_back(row)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == found


@pytest.mark.parametrize(("kind", "found"), [("refused", []), ("quick", ["I20"])])
def test_rows_that_are_refused_wait_and_their_neighbours_do_not(kind, found, tmp_path):
    book, _ = granted()
    book.finish(next(iter(book.rows.values())))
    row = book.enqueue(kind)
    book.claim(row)
    book.start(row)
    book.run("returned", row)
    book.fault("refuse_rows", 5.0)
    lives_on(book, OF_A_LIVE_WORKER + 5)
    book.leave(row)
    book.settle(row, "completed", output=book.made(row))
    lives_on(book)
    assert [number for number in book.broken(tmp_path) if number == "I20"] == found
