"""Spans of time in which faults were at work."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping

from tenure.chaos.ledger import Fault

FAILOVERS = frozenset({"failover"})
CRASHES = FAILOVERS | {"server_stop", "server_kill"}
OUTAGES = CRASHES | {"disk_full"}
LOCKS = frozenset({"lock_jobs", "lock_core"})

UNREST: Mapping[str, float] = {
    "failover": 8.0, "server_stop": 5.0, "server_kill": 5.0, "disk_full": 3.0, "crowd": 5.0,
    "lock_jobs": 2.0, "lock_core": 5.0, "lose_partition": 2.0,
    "end_sessions": 3.0, "lose_answer": 3.0, "cut": 3.0, "silence": 6.0, "slow": 2.0, "kill_pooler": 3.0,
    "stop_supervisor": 2.0, "move_clock": 3.0,
}  # fmt: skip
"""Faults that may hold up work of which they do not strike the holder, and for how many seconds after their end: connections are
made anew, and what was refused is repeated. Faults that are missing here hold up nothing but what they strike."""

AT_THE_EDGES: Mapping[str, float] = {"hostile_settings": 4.0}
"""Faults that end all sessions when they begin and when they end, and hold up nothing in between."""

REFUSALS = frozenset({"refuse_rows"})
PARKED = 120.0
"""Seconds after which a row that was refused has been tried again: by its worker after 30 s, by other leaders after the next
handovers."""

CONTACT = 12.0
"""Seconds after a fault of the server or the network until workers can be condemned again: that needs ten seconds of unbroken
contact with PostgreSQL."""


class Windows:
    """Also of faults that could not be done: they may have been done by half."""

    def __init__(self, spans: Iterable[tuple[float, float]]) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        for began, ended in sorted(spans):
            if self._ends and began <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], ended)
            else:
                self._begins.append(began)
                self._ends.append(ended)
        self._before = [0.0]
        """The length of all spans before each."""
        for began, ended in zip(self._begins, self._ends, strict=True):
            self._before.append(self._before[-1] + ended - began)

    def touch(self, begin: float, end: float) -> bool:
        place = bisect_left(self._ends, begin)
        return place < len(self._ends) and self._begins[place] <= end

    def calm(self, begin: float, end: float) -> float:
        """Seconds between these moments that lie outside all spans."""
        return max(0.0, end - begin - (self._until(end) - self._until(begin)))

    def _until(self, moment: float) -> float:
        place = bisect_right(self._begins, moment)
        if not place:
            return 0.0
        return self._before[place - 1] + min(moment, self._ends[place - 1]) - self._begins[place - 1]


def at_work(faults: Iterable[Fault], kinds: Collection[str], after: float = 0.0) -> Windows:
    return Windows((fault.began, fault.ended + after) for fault in faults if fault.kind in kinds)


def unrest_of(faults: Iterable[Fault], kinds: Collection[str]) -> Windows:
    return unrest(fault for fault in faults if fault.kind in kinds)


def unrest(faults: Iterable[Fault], at_least: float = 0.0) -> Windows:
    """With the time that it takes to recover from them."""
    return Windows(_unrest(faults, at_least))


def _unrest(faults: Iterable[Fault], at_least: float) -> Iterator[tuple[float, float]]:
    for fault in faults:
        if fault.kind in UNREST:
            yield fault.began, fault.ended + max(at_least, UNREST[fault.kind])
        elif fault.kind in AT_THE_EDGES:
            margin = max(at_least, AT_THE_EDGES[fault.kind])
            yield fault.began, fault.began + margin
            yield fault.ended - AT_THE_EDGES[fault.kind], fault.ended + margin
