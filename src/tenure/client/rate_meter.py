"""Measures how fast a count grows."""

from __future__ import annotations

import time
from collections import deque

WINDOW = 2.0  # seconds over which the rate is averaged


class RateMeter:
    """Turns a growing count into a rate per second, averaged over the last two seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def update(self, count: int) -> float:
        """Adds a sample and returns the current rate."""
        now = time.monotonic()
        self._samples.append((now, count))
        while now - self._samples[0][0] > WINDOW:
            self._samples.popleft()
        began, first = self._samples[0]
        return (count - first) / (now - began) if now > began else 0.0
