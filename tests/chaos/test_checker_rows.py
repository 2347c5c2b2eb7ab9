"""I17 exactly once for your own rows, I18 jobs commit with their callers."""

from __future__ import annotations

import pytest

from tests.chaos.histories import Book

# I17


def test_a_completed_job_without_its_effect(tmp_path):
    book = Book()
    book.done("atomic")
    assert book.broken(tmp_path) == ["I17"]


def test_a_completed_job_with_two_effects(tmp_path):
    book = Book()
    row = book.done("atomic")
    book.effect(row)
    book.effect(row)
    assert book.broken(tmp_path) == ["I17"]


def test_an_effect_of_a_job_that_failed(tmp_path):
    book = Book()
    book.effect(book.finish(book.enqueue("atomic"), "failed"))
    assert book.broken(tmp_path) == ["I17"]


def test_an_effect_of_a_dead_letter(tmp_path):
    book = Book()
    row = book.enqueue("atomic", max_attempts=1)
    book.claim(row)
    book.start(row)
    book.effect(row)
    book.fail(row)
    assert book.broken(tmp_path) == ["I17"]


@pytest.mark.parametrize("lie", [{"job": None}, {"job": "somebody"}])
def test_an_effect_of_nobody(lie, tmp_path):
    book = Book()
    book.effect(book.done(), **lie)
    assert book.broken(tmp_path) == ["I17"]


def test_an_effect_of_a_kind_that_writes_none(tmp_path):
    book = Book()
    book.effect(book.done("quick"))
    assert book.broken(tmp_path) == ["I17"]


def test_an_effect_for_another_offer(tmp_path):
    book = Book()
    book.effect(book.done("atomic"), n=99)
    assert book.broken(tmp_path) == ["I17"]


def test_a_completed_job_keeps_its_effect_when_it_is_deleted(tmp_path):
    book = Book()
    row = book.done("atomic")
    book.effect(row)
    book.delete(row)
    assert book.broken(tmp_path) == []


# I18


def test_an_order_without_its_job(tmp_path):
    book = Book()
    book.done()
    book.order(book.offer("ordered", answer="unknown"))
    assert book.broken(tmp_path) == ["I18"]


def test_a_job_without_its_order(tmp_path):
    book = Book()
    book.done("ordered")
    assert book.broken(tmp_path) == ["I18"]


def test_two_orders_for_one_job(tmp_path):
    book = Book()
    row = book.done("ordered")
    book.order(row.n)
    book.order(row.n)
    assert book.broken(tmp_path) == ["I18"]


def test_one_order_for_two_jobs(tmp_path):
    book = Book()
    row = book.done("ordered")
    book.order(row.n)
    book.finish(book.born("twin", row.n, "ordered"))
    assert book.broken(tmp_path) == ["I2", "I18"]


def test_an_order_for_another_job(tmp_path):
    book = Book()
    first, second = book.done("ordered"), book.done("ordered")
    book.order(first.n, second.id)
    book.order(second.n, second.id)
    assert book.broken(tmp_path) == ["I18"]


def test_a_transaction_that_was_rolled_back_leaves_neither(tmp_path):
    book = Book()
    book.done()
    book.offer("ordered", answer="refused")
    assert book.broken(tmp_path) == []
