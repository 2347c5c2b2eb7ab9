"""How often reports of runs are written: at once when it was quiet, then twice a second; those of watched runs more often."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.periodic import FOREVER
from tenure.worker.run.run import Run

GAP = 0.5
"""Seconds between two writes while runs keep reporting."""

WATCHED_GAP = 0.1
"""The same for runs that a client watches: a person looks at them."""


class UpdatePace:
    def __init__(self) -> None:
        self._all_at = 0.0
        self._all_due = False

    def due(self, reporting: Sequence[Run], now: float) -> list[Run]:
        """Of the runs that have reported something: whose reports are written now."""
        self._all_due = now >= self._all_at
        return list(reporting) if self._all_due else _watched(reporting)

    def written(self, now: float) -> None:
        """Those that were due."""
        if self._all_due:
            self._all_at = now + GAP

    def rest(self, reporting: Sequence[Run], now: float) -> float:
        """Seconds until one of them is due."""
        if not reporting:
            return FOREVER
        return 0.0 if _watched(reporting) else max(0.0, self._all_at - now)


def _watched(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.updates is not None and run.updates.watched]
