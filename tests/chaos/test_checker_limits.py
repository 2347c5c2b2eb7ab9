"""I19 limits are never exceeded."""

from __future__ import annotations

from itertools import count

from tests.chaos.builder import LedgerBuilder

WORKERS = count(1)  # each has one job, so that only limits can be exceeded


def claimed(builder: LedgerBuilder, count: int, kind: str = "limited_2"):
    rows = [builder.enqueue(kind) for _ in range(count)]
    for row in rows:
        builder.claim(row, f"w{next(WORKERS)}")
        builder.start(row)
    return rows


def test_as_many_as_the_limit_says_and_others_beside_them(tmp_path):
    builder = LedgerBuilder()
    for row in [*claimed(builder, 2), *claimed(builder, 2, "quick"), *claimed(builder, 3, "limited_3")]:
        builder.complete(row)
    assert builder.broken(tmp_path) == []


def test_one_more_than_the_limit_says(tmp_path):
    builder = LedgerBuilder()
    for row in claimed(builder, 3):
        builder.complete(row)
    assert builder.broken(tmp_path) == ["I19"]


def test_everything_that_makes_room(tmp_path):
    builder = LedgerBuilder()
    first, second = claimed(builder, 2)
    builder.complete(first)
    [third] = claimed(builder, 1)
    builder.crash(second)
    [fourth] = claimed(builder, 1)
    builder.cancel(third)
    [fifth] = claimed(builder, 1)
    builder.fail(fourth)
    builder.finish(second, worker="w9999")
    builder.complete(fifth)
    builder.promote(fourth)
    builder.finish(fourth, worker="w9998")
    assert builder.broken(tmp_path) == []


def test_a_crash_that_makes_room_only_later(tmp_path):
    builder = LedgerBuilder()
    first, second = claimed(builder, 2)
    [third] = claimed(builder, 1)
    builder.crash(first)
    builder.finish(first, worker="w9999")
    builder.complete(second)
    builder.complete(third)
    assert "I19" in builder.broken(tmp_path)


def test_a_limited_job_is_not_part_of_the_claim_order(tmp_path):
    builder = LedgerBuilder()
    held = claimed(builder, 2)
    waits = builder.enqueue("limited_2")
    for _ in range(3):
        builder.wait(10)
        builder.done()
    for row in held:
        builder.complete(row)
    builder.finish(waits, worker="w9999")
    assert builder.broken(tmp_path) == []
