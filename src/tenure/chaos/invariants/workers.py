"""What the record says of workers: when each was registered, condemned and removed, and when its process did not run."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.chaos.invariants.windows import Windows
from tenure.chaos.ledger import Fault, WorkerChange


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
