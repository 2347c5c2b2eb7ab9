"""Claimed jobs that wait for a slot: a worker whose jobs take a millisecond would otherwise wait for a claim after each of them.

How many are claimed ahead depends on how long jobs usually take here: as many as the slots finish in `AHEAD` seconds, so none if
jobs take longer than that. If they wait longer than `LONGEST_WAIT` nevertheless (long jobs came, and hold all slots), they are
requeued for other workers, without spending an attempt.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from tenure.worker.run.run import Run

AHEAD = 0.02
"""Seconds of work that are claimed ahead: a job of higher priority that comes now waits for them."""

MOST_AHEAD = 200

LONGEST_WAIT = 0.2
"""Seconds after which waiting jobs are requeued."""

WEIGHT = 0.05
"""Of one run in the average."""

LONGEST_COUNTED = 1.0
"""Seconds: a longer run counts as one of these."""

SHORTEST_USUAL = 1e-5
"""Seconds: so that runs of no measurable time do not divide by zero."""


class WaitingRuns:
    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._runs: deque[Run] = deque()
        self._usual = 1.0
        """Seconds that runs take here, on average. At first, nothing is claimed ahead."""
        self._since = 0.0

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def allowance(self) -> int:
        """How many jobs may wait."""
        return min(MOST_AHEAD, int(AHEAD * self._concurrency / max(SHORTEST_USUAL, self._usual))) if self._usual < AHEAD else 0

    def learn(self, seconds: float) -> None:
        """A run has taken this long."""
        # Without min(): every job pays for this, and the call would cost more than the rest.
        counted = seconds if seconds < LONGEST_COUNTED else LONGEST_COUNTED  # noqa: FURB136
        self._usual += WEIGHT * (counted - self._usual)

    def add(self, run: Run) -> None:
        if not self._runs:
            self._since = time.monotonic()
        if self._runs and run.job.priority > self._runs[-1].job.priority:
            self._runs = deque(sorted((*self._runs, run), key=lambda waiting: -waiting.job.priority))
        else:
            self._runs.append(run)

    def next(self) -> Run:
        """The run for which there is a slot now."""
        self._since = time.monotonic()
        return self._runs.popleft()

    def remove(self, run: Run) -> None:
        self._runs.remove(run)

    def take_stuck(self, now: float) -> Iterable[Run]:
        """All runs, if none of them got a slot for too long. Then nothing is claimed ahead before runs are short again."""
        if not self._runs or now - self._since < LONGEST_WAIT:
            return ()
        self._usual = 1.0
        return self.take_all()

    def take_all(self) -> Iterable[Run]:
        runs, self._runs = self._runs, deque()
        return runs
