"""I19 no more than the limit."""

from __future__ import annotations

from itertools import count

from tests.chaos.histories import Book

WORKERS = count(1)  # each has one job, so that only limits can be exceeded


def claimed(book: Book, count: int, kind: str = "limited_2"):
    rows = [book.enqueue(kind) for _ in range(count)]
    for row in rows:
        book.claim(row, f"w{next(WORKERS)}")
        book.start(row)
    return rows


def test_as_many_as_the_limit_says_and_others_beside_them(tmp_path):
    book = Book()
    for row in [*claimed(book, 2), *claimed(book, 2, "quick"), *claimed(book, 3, "limited_3")]:
        book.complete(row)
    assert book.broken(tmp_path) == []


def test_one_more_than_the_limit_says(tmp_path):
    book = Book()
    for row in claimed(book, 3):
        book.complete(row)
    assert book.broken(tmp_path) == ["I19"]


def test_whatever_makes_room(tmp_path):
    book = Book()
    first, second = claimed(book, 2)
    book.complete(first)
    [third] = claimed(book, 1)
    book.crash(second)
    [fourth] = claimed(book, 1)
    book.cancel(third)
    [fifth] = claimed(book, 1)
    book.fail(fourth)
    book.finish(second, worker="w9999")
    book.complete(fifth)
    book.promote(fourth)
    book.finish(fourth, worker="w9998")
    assert book.broken(tmp_path) == []


def test_a_crash_that_makes_room_only_later(tmp_path):
    book = Book()
    first, second = claimed(book, 2)
    [third] = claimed(book, 1)
    book.crash(first)
    book.finish(first, worker="w9999")
    book.complete(second)
    book.complete(third)
    assert "I19" in book.broken(tmp_path)


def test_what_is_limited_does_not_stand_in_the_line_of_the_others(tmp_path):
    book = Book()
    held = claimed(book, 2)
    waits = book.enqueue("limited_2")
    for _ in range(3):
        book.wait(10)
        book.done()
    for row in held:
        book.complete(row)
    book.finish(waits, worker="w9999")
    assert book.broken(tmp_path) == []
