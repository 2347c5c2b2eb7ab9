"""All orders in which the steps of several scripts can be taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, prod

Order = tuple[int, ...]


def orders(lengths: Sequence[int]) -> Iterator[Order]:
    """Each order lists the session that takes each step."""

    def extend(left: tuple[int, ...], prefix: Order) -> Iterator[Order]:
        if not any(left):
            yield prefix
        for who, steps in enumerate(left):
            if steps:
                yield from extend((*left[:who], steps - 1, *left[who + 1 :]), (*prefix, who))

    return extend(tuple(lengths), ())


def number_of_orders(lengths: Sequence[int]) -> int:
    return factorial(sum(lengths)) // prod(factorial(steps) for steps in lengths)


def next_turn(waiting: Sequence[int], not_now: frozenset[int]) -> int | None:
    """A session whose statement waits for a lock takes its turns after that statement has returned; the others continue."""
    return next((place for place, who in enumerate(waiting) if who not in not_now), None)


class Known:
    """Which sessions could not continue after which steps. Equivalent orders need not be played twice: if it is B's turn while B
    waits for a lock, the order continues as the one in which B comes later."""

    def __init__(self) -> None:
        self._not_now: dict[Order, frozenset[int]] = {}

    def learn(self, taken: Order, not_now: frozenset[int]) -> None:
        self._not_now[taken] = not_now

    def covers(self, order: Order) -> bool:
        waiting, taken = list(order), ()
        while waiting:
            not_now = self._not_now.get(taken)
            place = None if not_now is None else next_turn(waiting, not_now)
            if place is None:
                return False
            taken = (*taken, waiting.pop(place))
        return taken in self._not_now
