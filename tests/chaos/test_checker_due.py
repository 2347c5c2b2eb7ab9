"""I22 what is due is promoted."""

from __future__ import annotations

import pytest

from tenure.chaos.invariants.due import OF_A_NEW_LEADER, PATIENCE
from tests.chaos.histories import Book


def scheduled(**row: object):
    book = Book()
    book.lead("a", 1, duty="stager")
    due = book.now + 60
    made = book.enqueue(state="scheduled", due=due, **row)
    return book, made, due


@pytest.mark.parametrize(("late", "found"), [(PATIENCE - 1, []), (PATIENCE + 1, ["I22"])])
def test_a_scheduled_job_becomes_pending_soon_after_its_time(late, found, tmp_path):
    book, row, due = scheduled()
    book.now = due + late
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == found


def test_a_retry_that_is_promoted_late(tmp_path):
    book = Book()
    row = book.enqueue()
    book.claim(row)
    book.start(row)
    book.fail(row, due=book.now + 1)
    book.wait(1 + PATIENCE + 1)
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == ["I22"]


def test_a_job_that_is_never_promoted(tmp_path):
    book, _, _ = scheduled()
    book.done()
    book.set(drained=False)
    assert book.broken(tmp_path) == ["I14", "I22"]


def test_a_scheduled_job_that_is_canceled_is_never_promoted(tmp_path):
    book, row, _ = scheduled()
    book.done()
    book.wait(60)
    book.cancel(row)
    assert book.broken(tmp_path) == []


@pytest.mark.parametrize(("late", "found"), [(OF_A_NEW_LEADER - 1, []), (OF_A_NEW_LEADER + 1, ["I22"])])
def test_a_duty_that_changes_hands_takes_longer(late, found, tmp_path):
    book, row, due = scheduled()
    book.now = due + 1
    book.lead("b", 2, duty="stager")
    book.now = due + late
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == found


@pytest.mark.parametrize(("fault", "found"), [("lock_core", []), ("lock_aside", ["I22"]), ("fill_notify", ["I22"])])
def test_a_lock_on_a_table_that_promotion_does_not_need_is_no_excuse(fault, found, tmp_path):
    book, row, due = scheduled()
    book.now = due
    book.fault(fault, PATIENCE + 1)
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == found


@pytest.mark.parametrize(("kind", "found"), [("refused", []), ("quick", ["I22"])])
def test_a_row_that_is_refused_is_promoted_later_and_its_neighbours_are_not(kind, found, tmp_path):
    book, row, due = scheduled(kind=kind)
    book.now = due
    book.fault("refuse_rows", PATIENCE + 1)
    book.promote(row)
    book.finish(row)
    assert book.broken(tmp_path) == found
