"""How long claims take and how often connections are lost, as metrics of a supervisor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

CLAIM_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the buckets, in seconds. Longer claims are in one more."""


class ClaimCount(NamedTuple):
    """Claims of a process, or of all processes of a pool."""

    seconds: float
    """The sum of their durations."""
    buckets: Sequence[int]
    """How many took up to each bound, and up to none of them; not cumulative."""
    reconnects: int
    """Connections to PostgreSQL that were made again after they had been lost."""

    def plus(self, other: ClaimCount) -> ClaimCount:
        buckets = [a + b for a, b in zip(self.buckets, other.buckets, strict=True)]
        return ClaimCount(self.seconds + other.seconds, buckets, self.reconnects + other.reconnects)


NO_CLAIMS = ClaimCount(0.0, (0,) * (len(CLAIM_BOUNDS) + 1), 0)


class ClaimCounter:
    """Counts the claims of this process."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._buckets = list(NO_CLAIMS.buckets)
        self._reported = 0

    def add(self, seconds: float) -> None:
        self._seconds += seconds
        self._buckets[bisect_left(CLAIM_BOUNDS, seconds)] += 1

    def take(self, reconnects: int) -> ClaimCount | None:
        """What was counted since the last call, None if that is nothing. `reconnects`: how many there were in all."""
        if reconnects == self._reported and not any(self._buckets):
            return None
        count = ClaimCount(self._seconds, self._buckets, reconnects - self._reported)
        self._seconds, self._buckets, self._reported = 0.0, list(NO_CLAIMS.buckets), reconnects
        return count
