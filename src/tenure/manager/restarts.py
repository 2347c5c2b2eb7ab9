"""Delays the start of the next process after others have crashed early, and reports when the restart limit is reached."""

from __future__ import annotations

import time

from tenure.manager.child_lifecycle import ChildLifecycle
from tenure.periodic import jittered

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 30.0


class Restarts:
    """The first process that crashes early is replaced at once, because a job may have killed it. After that the pause
    doubles with each one."""

    def __init__(self, limit: int) -> None:
        """`limit` 0: no limit."""
        self._limit = limit
        self._not_before = 0.0
        self.early_crashes = 0
        """In a row."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next start; 0 if it may start now."""
        return max(0.0, self._not_before - time.monotonic())

    @property
    def limit_reached(self) -> bool:
        return 0 < self._limit <= self.early_crashes

    def ended(self, lifecycle: ChildLifecycle) -> None:
        if not lifecycle.crashed_early:
            self.early_crashes = 0
            return
        self.early_crashes += 1
        if self.early_crashes > 1:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.early_crashes, 10))
            self._not_before = time.monotonic() + jittered(pause)
