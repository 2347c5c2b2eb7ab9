"""Spans of time in which the server was struck."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from tenure.chaos.ledger import Fault

CRASHES = frozenset({"server_stop", "server_kill"})
OUTAGES = CRASHES | {"disk_full"}


class Windows:
    """Also of faults that could not be done: they may have been done by half."""

    def __init__(self, faults: Iterable[Fault], kinds: frozenset[str]) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        for began, ended in sorted((fault.began, fault.ended) for fault in faults if fault.kind in kinds):
            if self._ends and began <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], ended)
            else:
                self._begins.append(began)
                self._ends.append(ended)

    def touch(self, begin: float, end: float) -> bool:
        place = bisect_left(self._ends, begin)
        return place < len(self._ends) and self._begins[place] <= end
