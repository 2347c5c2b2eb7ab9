"""One refused item in a group is found, and costs the others nothing."""

from __future__ import annotations

from itertools import product

import pytest

from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve

SIZES = range(1, 10)


class Receiver:
    def __init__(self, *bad: int) -> None:
        self._bad = bad
        self.sent: list[int] = []
        self.refused: list[int] = []

    async def send(self, group: list[int]) -> None:
        if set(group) & set(self._bad):
            raise Refused("not this one")
        self.sent += group

    async def refuse(self, item: int, _error: Refused) -> None:
        self.refused.append(item)


@pytest.mark.parametrize(("size", "bad"), [(size, bad) for size, bad in product(SIZES, SIZES) if bad < size])
async def test_the_refused_item_alone_is_refused_and_each_of_the_others_is_sent_once(size, bad):
    receiver = Receiver(bad)
    await send_or_halve(list(range(size)), receiver.send, receiver.refuse)
    assert receiver.refused == [bad]
    assert receiver.sent == [item for item in range(size) if item != bad]


async def test_all_that_are_refused_are_found_one_by_one():
    receiver = Receiver(0, 3, 4, 9)
    await send_or_halve(list(range(10)), receiver.send, receiver.refuse)
    assert (receiver.refused, receiver.sent) == ([0, 3, 4, 9], [1, 2, 5, 6, 7, 8])
