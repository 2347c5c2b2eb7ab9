"""I11 one leader per term."""

from __future__ import annotations

import pytest

from tests.chaos.builder import LedgerBuilder


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
