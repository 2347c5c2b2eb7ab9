"""When the next process may be started, after others have died young; and when it is no use."""

from __future__ import annotations

import time

from tenure.manager.child_lifecycle import ChildLifecycle
from tenure.periodic import jittered

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 30.0


class Restarts:
    """The first one that dies young is replaced at once, for it may have been struck by a job; then there is a pause that
    doubles."""

    def __init__(self, limit: int) -> None:
        """`limit` 0: never give up."""
        self._limit = limit
        self._not_before = 0.0
        self.young_deaths = 0
        """In a row."""

    @property
    def pause(self) -> float:
        """Seconds to wait; none, if one may be started now."""
        return max(0.0, self._not_before - time.monotonic())

    @property
    def hopeless(self) -> bool:
        return 0 < self._limit <= self.young_deaths

    def ended(self, life: ChildLifecycle) -> None:
        if not life.died_young:
            self.young_deaths = 0
            return
        self.young_deaths += 1
        if self.young_deaths > 1:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.young_deaths, 10))
            self._not_before = time.monotonic() + jittered(pause)
