"""I11 one leader per term, I22 due jobs are promoted. I10, planned times: test_checker_ticks."""

from __future__ import annotations

import pytest

from tenure.chaos.invariants.duties import MAX_DELAY, MAX_DELAY_AFTER_HANDOVER
from tests.chaos.builder import LedgerBuilder

# Terms


def led(*terms: tuple[str, int]) -> LedgerBuilder:
    builder = LedgerBuilder()
    builder.done()
    for holder, term in terms:
        builder.lead(holder, term)
    return builder


@pytest.mark.parametrize(
    "terms",
    [
        [("a", 1)],
        [("a", 1), ("a", 1), ("b", 2), ("b", 2)],
        [("a", 1), ("a", 2), ("b", 3), ("a", 4)],
    ],
)
def test_terms_that_follow_each_other(terms, tmp_path):
    assert led(*terms).broken(tmp_path) == []


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([("a", 2), ("a", 1)], id="back"),
        pytest.param([("a", 1), ("b", 2), ("a", 1)], id="an old leader writes"),
        pytest.param([("a", 1), ("b", 2), ("a", 1), ("b", 2)], id="an old leader writes between"),
        pytest.param([("a", 1), ("b", 1)], id="two in one term"),
        pytest.param([("a", 1), ("b", 3)], id="a term left out"),
    ],
)
def test_terms_that_do_not(terms, tmp_path):
    assert led(*terms).broken(tmp_path) == ["I11"]


def test_a_lease_that_vanishes(tmp_path):
    builder = led(("a", 1))
    builder.terms.append(builder.terms[-1]._replace(seq=2, was_holder="a", was_term=1, holder=None, term=None))
    assert builder.broken(tmp_path) == ["I11"]


def test_duties_have_terms_of_their_own(tmp_path):
    builder = led(("a", 5))
    builder.lead("b", 1, duty="stager")
    assert builder.broken(tmp_path) == []


# Due jobs


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
