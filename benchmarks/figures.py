"""What was measured, round by round."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict


class Figures:
    def __init__(self) -> None:
        self._found: dict[str, list[float]] = defaultdict(list)

    def add(self, key: str, value: float) -> None:
        self._found[key].append(value)

    def has(self, key: str) -> bool:
        return key in self._found

    def rounds(self, key: str) -> list[float]:
        return self._found[key]

    def median(self, key: str) -> float:
        return statistics.median(self._found[key])

    def ratio(self, key: str, of: str) -> float:
        """The median of the ratios of each round: what slowed a whole round down cancels out."""
        return statistics.median(self.ratios(key, of))

    def ratios(self, key: str, of: str) -> list[float]:
        """Of each round."""
        return [a / b if b else math.nan for a, b in zip(self._found[key], self._found[of], strict=True)]
