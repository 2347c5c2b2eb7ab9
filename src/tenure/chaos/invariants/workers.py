"""What the record says of workers: when each was registered, condemned and removed, and when its process did not run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from tenure.chaos.invariants.windows import Windows
from tenure.chaos.ledger import Fault, WorkerChange

LARGEST_GAP = 2.0
"""Seconds between two lines of a process that still count as one span in which it works. In a longer gap it may have nothing to
do, or be blocked by a handler, or be dead: that is not to be told from the record."""


class Workers:
    def __init__(self, changes: Iterable[WorkerChange], faults: Iterable[Fault]) -> None:
        self._pids: dict[str, int] = {}
        self._ends: dict[str, float] = {}
        self._removals: dict[str, float] = {}
        for change in changes:
            self._pids.setdefault(change.worker, change.pid)
            if change.what == "condemned":
                self._ends.setdefault(change.worker, change.at)
            elif change.what == "removed":
                self._ends.setdefault(change.worker, change.at)
                self._removals.setdefault(change.worker, change.at)
        spans: dict[int, list[tuple[float, float]]] = {}
        for fault in faults:
            for pid in fault.stopped:
                spans.setdefault(pid, []).append((fault.began, fault.ended))
        self._stops = {pid: Windows(stops) for pid, stops in spans.items()}
        self._works: dict[str, list[list[float]]] = {}

    def ran(self, worker: str, at: float) -> None:
        """A handler said something; those of one process come in the order of time."""
        spans = self._works.get(worker)
        if spans is None:
            self._works[worker] = [[at, at]]
        elif spans[-1][1] <= at <= spans[-1][1] + LARGEST_GAP:
            spans[-1][1] = at
        elif at > spans[-1][1]:
            spans.append([at, at])

    def working(self, worker: str | None, begin: float, end: float) -> Iterator[tuple[float, float]]:
        """The spans between these moments in which its process is known to run handlers."""
        spans = self._works.get(worker or "", [])
        for place in range(bisect_left(spans, begin, key=_end_of), len(spans)):
            first, last = spans[place]
            if first >= end:
                return
            yield max(first, begin), min(last, end)

    @property
    def recorded(self) -> bool:
        return bool(self._pids)

    def removed(self, worker: str | None) -> float:
        """When its row went. Infinity: it did not."""
        return self._removals.get(worker or "", float("inf"))

    def ended(self, worker: str | None) -> float:
        """When it was condemned, or when its row went."""
        return self._ends.get(worker or "", float("inf"))

    def running(self, worker: str | None, begin: float, end: float) -> float:
        """Seconds between these moments in which its process was not stopped."""
        stops = self._stops.get(self._pids.get(worker or "", 0))
        return max(0.0, end - begin) if stops is None else stops.calm(begin, end)

    def stopped(self, worker: str | None, begin: float, end: float) -> float:
        return max(0.0, end - begin) - self.running(worker, begin, end)


def _end_of(span: list[float]) -> float:
    return span[1]
