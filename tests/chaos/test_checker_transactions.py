"""I17 exactly once for your own rows, I18 jobs commit with their caller."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder

# I17


def test_a_completed_job_without_its_effect(tmp_path):
    builder = LedgerBuilder()
    builder.done("atomic")
    assert builder.broken(tmp_path) == ["I17"]


def test_a_completed_job_with_two_effects(tmp_path):
    builder = LedgerBuilder()
    row = builder.done("atomic")
    builder.effect(row)
    builder.effect(row)
    assert builder.broken(tmp_path) == ["I17"]


def test_an_effect_of_a_job_that_failed(tmp_path):
    builder = LedgerBuilder()
    builder.effect(builder.finish(builder.enqueue("atomic"), "failed"))
    assert builder.broken(tmp_path) == ["I17"]


def test_an_effect_of_a_dead_letter(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue("atomic", max_attempts=1)
    builder.claim(row)
    builder.start(row)
    builder.effect(row)
    builder.fail(row)
    assert builder.broken(tmp_path) == ["I17"]


@pytest.mark.parametrize("override", [{"job": None}, {"job": "unknown"}])
def test_an_effect_of_no_job(override, tmp_path):
    builder = LedgerBuilder()
    builder.effect(builder.done(), **override)
    assert builder.broken(tmp_path) == ["I17"]


def test_an_effect_of_a_kind_that_writes_none(tmp_path):
    builder = LedgerBuilder()
    builder.effect(builder.done("quick"))
    assert builder.broken(tmp_path) == ["I17"]


def test_an_effect_for_another_request(tmp_path):
    builder = LedgerBuilder()
    builder.effect(builder.done("atomic"), n=99)
    assert builder.broken(tmp_path) == ["I17"]


def test_a_completed_job_keeps_its_effect_when_it_is_deleted(tmp_path):
    builder = LedgerBuilder()
    row = builder.done("atomic")
    builder.effect(row)
    builder.delete(row)
    assert builder.broken(tmp_path) == []


# I18


def test_an_order_without_its_job(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.order(builder.request("ordered", answer="unknown"))
    assert builder.broken(tmp_path) == ["I18"]


def test_a_job_without_its_order(tmp_path):
    builder = LedgerBuilder()
    builder.done("ordered")
    assert builder.broken(tmp_path) == ["I18"]


def test_two_orders_for_one_job(tmp_path):
    builder = LedgerBuilder()
    row = builder.done("ordered")
    builder.order(row.n)
    builder.order(row.n)
    assert builder.broken(tmp_path) == ["I18"]


def test_one_order_for_two_jobs(tmp_path):
    builder = LedgerBuilder()
    row = builder.done("ordered")
    builder.order(row.n)
    builder.finish(builder.insert("second", row.n, "ordered"))
    assert builder.broken(tmp_path) == ["I2", "I18"]


def test_an_order_for_another_job(tmp_path):
    builder = LedgerBuilder()
    first, second = builder.done("ordered"), builder.done("ordered")
    builder.order(first.n, second.id)
    builder.order(second.n, second.id)
    assert builder.broken(tmp_path) == ["I18"]


def test_a_transaction_that_was_rolled_back_leaves_neither(tmp_path):
    builder = LedgerBuilder()
    builder.done()
    builder.request("ordered", answer="refused")
    assert builder.broken(tmp_path) == []
