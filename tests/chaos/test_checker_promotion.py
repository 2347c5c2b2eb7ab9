"""I22 due jobs are promoted."""

from __future__ import annotations

import pytest

from tenure.chaos.invariants.schedules import MAX_DELAY, MAX_DELAY_AFTER_HANDOVER
from tests.chaos.builder import LedgerBuilder


def scheduled(**row: object):
    builder = LedgerBuilder()
    builder.lead("a", 1, duty="stager")
    due = builder.now + 60
    made = builder.enqueue(state="scheduled", due=due, **row)
    return builder, made, due


@pytest.mark.parametrize(("late", "found"), [(MAX_DELAY - 1, []), (MAX_DELAY + 1, ["I22"])])
def test_a_scheduled_job_becomes_pending_soon_after_its_time(late, found, tmp_path):
    builder, row, due = scheduled()
    builder.now = due + late
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == found


def test_a_retry_that_is_promoted_late(tmp_path):
    builder = LedgerBuilder()
    row = builder.enqueue()
    builder.claim(row)
    builder.start(row)
    builder.fail(row, due=builder.now + 1)
    builder.wait(1 + MAX_DELAY + 1)
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == ["I22"]


def test_a_job_that_is_never_promoted(tmp_path):
    builder, _, _ = scheduled()
    builder.done()
    builder.set(drained=False)
    assert builder.broken(tmp_path) == ["I14", "I22"]


def test_a_scheduled_job_that_is_canceled_is_never_promoted(tmp_path):
    builder, row, _ = scheduled()
    builder.done()
    builder.wait(60)
    builder.cancel(row)
    assert builder.broken(tmp_path) == []


@pytest.mark.parametrize(("late", "found"), [(MAX_DELAY_AFTER_HANDOVER - 1, []), (MAX_DELAY_AFTER_HANDOVER + 1, ["I22"])])
def test_a_duty_that_changes_hands_takes_longer(late, found, tmp_path):
    builder, row, due = scheduled()
    builder.now = due + 1
    builder.lead("b", 2, duty="stager")
    builder.now = due + late
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("fault", "found"), [("lock_core", []), ("lock_aside", ["I22"]), ("fill_notify", ["I22"])])
def test_a_lock_on_a_table_that_promotion_does_not_need_is_not_an_excuse(fault, found, tmp_path):
    builder, row, due = scheduled()
    builder.now = due
    builder.fault(fault, MAX_DELAY + 1)
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == found


@pytest.mark.parametrize(("kind", "found"), [("refused", []), ("quick", ["I22"])])
def test_a_row_that_is_refused_is_promoted_later_and_its_neighbours_are_not(kind, found, tmp_path):
    builder, row, due = scheduled(kind=kind)
    builder.now = due
    builder.fault("refuse_rows", MAX_DELAY + 1)
    builder.promote(row)
    builder.finish(row)
    assert builder.broken(tmp_path) == found
