"""Time spans in which faults could delay or undo work."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping

from tenure.chaos.ledger import Fault

FAILOVERS = frozenset({"failover"})
CRASHES = FAILOVERS | {"server_stop", "server_kill"}
OUTAGES = CRASHES | {"disk_full"}
LOCKS = frozenset({"lock_jobs", "lock_core"})

RECOVERY: Mapping[str, float] = {
    "failover": 8.0, "server_stop": 5.0, "server_kill": 5.0, "disk_full": 3.0, "crowd": 5.0,
    "lock_jobs": 2.0, "lock_core": 5.0, "lose_partition": 2.0,
    "end_sessions": 3.0, "lose_answer": 3.0, "cut": 3.0, "silence": 6.0, "slow": 2.0, "kill_pooler": 3.0,
    "stop_supervisor": 2.0, "move_clock": 3.0,
}  # fmt: skip
"""Faults that may delay jobs whose holder they do not hit, and the seconds until the system has recovered from them: connections
are opened again, and what was refused is repeated. Faults that are missing here delay only the jobs of the worker they hit."""

EDGE_RECOVERY: Mapping[str, float] = {"hostile_settings": 4.0}
"""Faults that end all sessions when they begin and when they end, and delay nothing in between."""

REFUSALS = frozenset({"refuse_rows"})
REFUSAL_RECOVERY = 120.0
"""Seconds after which a refused row has been tried again: by its worker after 30 s, by other leaders after the next
handovers."""

CONTACT_RECOVERY = 12.0
"""Seconds after a fault of the server or the network until workers can be condemned again: that needs ten seconds of unbroken
contact with PostgreSQL."""


class Windows:
    """Merged time spans. Faults that could not be done count as well: they may have been done in part."""

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
        """For each span, the total length of the spans before it."""
        for began, ended in zip(self._begins, self._ends, strict=True):
            self._before.append(self._before[-1] + ended - began)

    def overlap(self, begin: float, end: float) -> bool:
        """Whether any span overlaps this one."""
        index = bisect_left(self._ends, begin)
        return index < len(self._ends) and self._begins[index] <= end

    def seconds_outside(self, begin: float, end: float) -> float:
        """Seconds between these times that are outside all spans."""
        return max(0.0, end - begin - (self._seconds_before(end) - self._seconds_before(begin)))

    def _seconds_before(self, at: float) -> float:
        index = bisect_right(self._begins, at)
        if not index:
            return 0.0
        return self._before[index - 1] + min(at, self._ends[index - 1]) - self._begins[index - 1]


def fault_windows(faults: Iterable[Fault], kinds: Collection[str], after: float = 0.0) -> Windows:
    """The spans of faults of these kinds, each extended by `after` seconds."""
    return Windows((fault.began, fault.ended + after) for fault in faults if fault.kind in kinds)


def disturbed_windows(faults: Iterable[Fault], at_least: float = 0.0) -> Windows:
    """The spans in which faults may have delayed work, including the time to recover from them."""
    return Windows(_disturbed(faults, at_least))


def _disturbed(faults: Iterable[Fault], at_least: float) -> Iterator[tuple[float, float]]:
    for fault in faults:
        if fault.kind in RECOVERY:
            yield fault.began, fault.ended + max(at_least, RECOVERY[fault.kind])
        elif fault.kind in EDGE_RECOVERY:
            recovery = max(at_least, EDGE_RECOVERY[fault.kind])
            yield fault.began, fault.began + recovery
            yield fault.ended - EDGE_RECOVERY[fault.kind], fault.ended + recovery
