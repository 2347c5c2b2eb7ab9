"""How much of everything is measured beside peers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PeerSizes:
    rounds: int = 3
    jobs: int = 50_000
    """Enqueued in bulk and drained, twice in each round. A slow peer gets its share of them."""
    singles: int = 1_000
    wakeups: int = 100
    steady: int = 1_000
    rate: float = 100.0
    """Jobs a second of the steady load."""


FULL = PeerSizes()
QUICK = PeerSizes(rounds=1, jobs=5_000, singles=200, wakeups=30, steady=300)
