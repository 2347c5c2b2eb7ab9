"""How fast counts grow."""

from __future__ import annotations

import time
from collections import deque

WINDOW = 2.0  # seconds over which a pace is taken


class Pace:
    """How fast a count grows."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def mark(self, count: int) -> float:
        now = time.monotonic()
        self._seen.append((now, count))
        while now - self._seen[0][0] > WINDOW:
            self._seen.popleft()
        began, first = self._seen[0]
        return (count - first) / (now - began) if now > began else 0.0
