"""Counts of runs and processes, as the metrics of a supervisor."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.model.claim_counts import NO_CLAIMS, ClaimCount
from tenure.model.events import JobSettled, RunLost

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Upper bounds of the buckets, in seconds. Longer runs are in one more."""


class RunCount(NamedTuple):
    """Runs of a kind that ended in the same way."""

    queue: str
    kind: str
    outcome: str
    """What the run's event `JobSettled` says: completed, failed, timed_out and so on; lost, if it had lost its job."""
    runs: int
    seconds: float
    """The sum of their durations."""
    buckets: Sequence[int]
    """How many took up to each bound, and up to none of them; not cumulative."""


@dataclass(slots=True)
class _Sum:
    runs: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))


class RequeueReason(NamedTuple):
    """Jobs of a kind that were taken from their workers for the same reason."""

    queue: str
    kind: str
    why: str
    """What the event `JobReaped` says: crashed, lease_lost, expired, stopped."""


class RunTotals:
    """Sums of counts, of all processes that a supervisor has started."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], _Sum] = {}
        self.claims: dict[str, ClaimCount] = {}
        """By pool."""
        self.requeued: Counter[RequeueReason] = Counter()
        """Jobs of workers that died, as far as this supervisor requeued or quarantined them."""

    def add_claims(self, pool: str, count: ClaimCount) -> None:
        self.claims[pool] = self.claims.get(pool, NO_CLAIMS).plus(count)

    def add_requeued(self, queue: str, kind: str, why: str) -> None:
        self.requeued[RequeueReason(queue, kind, why)] += 1

    def add(self, counts: Iterable[RunCount]) -> None:
        for count in counts:
            known = self._sums.setdefault((count.queue, count.kind, count.outcome), _Sum())
            known.runs += count.runs
            known.seconds += count.seconds
            known.buckets = [a + b for a, b in zip(known.buckets, count.buckets, strict=True)]

    def counts(self) -> list[RunCount]:
        return [RunCount(*key, one.runs, one.seconds, one.buckets) for key, one in self._sums.items()]


class RunCounter:
    """Counts the runs of this process."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], _Sum] = {}

    def add(self, event: JobSettled) -> None:
        known = self._sums.setdefault((event.queue, event.kind, event.what), _Sum())
        known.runs += 1
        known.seconds += event.ran
        known.buckets[bisect_left(BOUNDS, event.ran)] += 1

    def add_lost(self, event: RunLost) -> None:
        """How long it ran is not counted: its outcome is that of another run."""
        self._sums.setdefault((event.queue, event.kind, "lost"), _Sum()).runs += 1

    def take(self) -> list[RunCount]:
        """What was counted since the last call."""
        sums, self._sums = self._sums, {}
        return [RunCount(*key, one.runs, one.seconds, one.buckets) for key, one in sums.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMetrics:
    """A process that runs handlers."""

    pool: str
    name: str
    running: int
    slots: int
    memory_mb: float
    age: float
    unwritten: int = 0
    """Outcomes of runs that are not written yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorMetrics:
    """What a supervisor knows without asking PostgreSQL."""

    processes: Sequence[ProcessMetrics]
    deaths: int
    renewed_ago: float | None
    """Seconds since the last renewal of the leases; None: there was none yet."""
    runs: Sequence[RunCount]
    claims: Mapping[str, ClaimCount] = field(default_factory=dict)
    """By pool."""
    requeued: Mapping[RequeueReason, int] = field(default_factory=dict)
    reconnects: int = 0
    """Of the supervisor's own connection."""
