"""All orders, each once; orders that are left out are equivalent to one that is played."""

from __future__ import annotations

import pytest

from tests.interleavings.orders import Known, number_of_orders, orders


@pytest.mark.parametrize("lengths", [(1,), (2, 2), (2, 4, 2), (2, 3, 4)])
def test_every_order_is_given_once(lengths: tuple[int, ...]):
    given = list(orders(lengths))
    assert len(set(given)) == len(given) == number_of_orders(lengths)
    assert all([order.count(who) for who in range(len(lengths))] == list(lengths) for order in given)


def test_a_session_that_waits_takes_its_turns_later():
    known = Known()
    for taken, not_now in {(): (), (0,): (), (0, 1): (1,), (0, 1, 0): (), (0, 1, 0, 1): ()}.items():
        known.learn(taken, frozenset(not_now))
    assert known.covers((0, 1, 0, 1))
    assert known.covers((0, 1, 1, 0))
    assert not known.covers((0, 0, 1, 1))
