"""I8 no more runs than slots, I9 first come, first granted."""

from __future__ import annotations

import pytest

from tests.chaos.histories import Book, Row

# I8


def begun(book: Book, worker: str = "w1", **row: object) -> Row:
    made = book.enqueue(**row)
    book.claim(made, worker)
    book.start(made)
    return made


@pytest.mark.parametrize(("kind", "found"), [("quick", ["I8"]), ("stubborn", []), ("stubborn_thread", [])])
def test_more_handlers_at_once_than_slots(kind, found, tmp_path):
    book = Book()
    for row in [begun(book, kind=kind) for _ in range(3)]:
        book.complete(row)
    assert book.broken(tmp_path) == found


def test_as_many_handlers_as_slots(tmp_path):
    book = Book()
    for worker in ("w1", "w2"):
        for row in [begun(book, worker) for _ in range(2)]:
            book.complete(row)
    assert book.broken(tmp_path) == []


@pytest.mark.parametrize("end", ["returned", "raised", "aborted"])
def test_a_handler_that_ended_has_left_its_slot(end, tmp_path):
    book = Book()
    book.set(concurrency=1)
    for _ in range(2):
        row = begun(book)
        book.run(end, row)
        book.leave(row)
        book.settle(row, "failed")
    assert book.broken(tmp_path) == []


def test_a_killed_process_takes_its_runs_along(tmp_path):
    book = Book()
    book.set(concurrency=1)
    row = begun(book, "w1")
    book.crash(row)
    book.finish(row, worker="w2")
    assert book.broken(tmp_path) == []


# I9


def passed_over(book: Book, **older: object) -> Row:
    """Two pending jobs, of which the younger is granted at once, and another again after longer than may be."""
    old = book.enqueue(**older)
    for _ in range(2):
        book.done()
        book.wait(book.course.late + 1)
    book.done()
    return old


def test_a_job_that_is_passed_over_for_long(tmp_path):
    book = Book()
    book.finish(passed_over(book))
    assert book.broken(tmp_path) == ["I9"]


def test_a_job_that_is_never_granted_while_others_are(tmp_path):
    book = Book()
    book.cancel(passed_over(book))
    assert book.broken(tmp_path) == ["I9"]


@pytest.mark.parametrize("other", [{"queue": "mail"}, {"priority": 25}])
def test_other_queues_and_priorities_have_their_own_order(other, tmp_path):
    book = Book()
    book.finish(passed_over(book, **other))
    assert book.broken(tmp_path) == []


def test_an_urgent_job_that_waits_while_others_are_granted(tmp_path):
    book = Book()
    book.finish(passed_over(book, priority=75))
    assert book.broken(tmp_path) == ["I9"]


def test_a_job_may_be_passed_over_for_a_moment(tmp_path):
    """Another claim had locked it, and was rolled back."""
    book = Book()
    row = book.enqueue()
    book.done()
    book.wait(book.course.late - 1)
    book.done()
    book.finish(row)
    assert book.broken(tmp_path) == []


def test_a_long_queue_is_no_passing_over(tmp_path):
    book = Book()
    rows = [book.enqueue() for _ in range(6)]
    for first, second in zip(rows[1::2], rows[::2], strict=True):
        book.wait(book.course.late * 2)
        book.finish(first)
        book.finish(second)
    assert book.broken(tmp_path) == []


def test_jobs_that_nobody_younger_overtakes_may_wait_for_ever(tmp_path):
    book = Book()
    row = book.enqueue()
    book.wait(100)
    book.finish(row)
    assert book.broken(tmp_path) == []


def test_a_job_in_two_crashes_runs_apart_from_the_others(tmp_path):
    book = Book()
    book.set(concurrency=9)
    row = begun(book)
    book.crash(row)
    book.claim(row)
    book.start(row)
    book.crash(row)
    for _ in range(3):
        book.wait(book.course.late + 1)
        book.done()
    book.finish(row)
    assert book.broken(tmp_path) == []


def test_one_that_runs_apart_passes_nobody_over(tmp_path):
    book = Book()
    book.set(concurrency=9)
    waiting = book.enqueue()
    for _ in range(2):
        row = book.enqueue()
        for _ in range(2):
            row.crashes += 1
        book.moves[-1] = book.moves[-1]._replace(crashes=2)
        book.finish(row)
        book.wait(book.course.late + 1)
    book.finish(waiting)
    assert book.broken(tmp_path) == ["I13"]  # born with crashes; the order is as it should be


def test_a_returned_job_keeps_its_place(tmp_path):
    book = Book()
    book.set(concurrency=9)
    row = begun(book)
    book.wait(60)
    book.crash(row)
    for _ in range(2):
        book.done()
        book.wait(book.course.late + 1)
    book.done()
    book.finish(row)
    assert book.broken(tmp_path) == ["I9"]


def test_a_promoted_job_waits_from_its_promotion_on(tmp_path):
    book = Book()
    row = book.enqueue(state="scheduled")
    for _ in range(3):
        book.wait(book.course.late + 1)
        book.done()
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == []


@pytest.mark.parametrize(("fault", "found"), [("server_stop", []), ("disk_full", []), ("kill_child", ["I9"])])
def test_a_struck_server_is_an_excuse(fault, found, tmp_path):
    book = Book()
    row = book.enqueue()
    book.fault(fault, 1.0)
    for _ in range(2):
        book.done()
        book.wait(book.course.late + 1)
    book.done()
    book.finish(row)
    assert book.broken(tmp_path) == found


@pytest.mark.parametrize(("afterwards", "found"), [(1.0, []), (20.0, ["I9"])])
def test_the_time_in_which_a_locked_table_held_up_all_does_not_count(afterwards, found, tmp_path):
    book = Book()
    row = book.enqueue()
    book.done()
    book.fault("lock_core", book.course.late + 5)
    book.wait(afterwards)
    book.done()
    book.finish(row)
    assert book.broken(tmp_path) == found


def test_a_transaction_that_commits_late_is_not_seen_before(tmp_path):
    book = Book()
    row = book.enqueue()
    for _ in range(3):
        book.done()
        book.wait(book.course.late + 1)
    book.calls[0] = book.calls[0]._replace(ended=book.now)
    book.finish(row)
    assert book.broken(tmp_path) == []
