"""Jobs enqueued, started and ended per minute, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tenure.store.reports import LatencyRow


@dataclass(frozen=True, slots=True)
class MinuteCount:
    minute: datetime
    queue: str
    kind: str
    what: str
    """enqueued, started; completed, failed, canceled; retry and dead_letter, for attempts that ended that way."""
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the finished jobs of a kind waited, or ran. Percentiles are in seconds, accurate to within a fifth."""

    queue: str
    kind: str
    measure: str
    """`waited`: from enqueue to the start of the last run. `ran`: from there to the end."""
    jobs: int
    p50: float
    p95: float
    p99: float


def latencies(rows: Iterable[LatencyRow]) -> list[Latency]:
    histograms: dict[tuple[str, str, str], dict[int, int]] = {}
    for row in rows:
        histograms.setdefault((row.queue, row.kind, row.measure), {})[row.bucket] = row.jobs
    return [_latency(queue, kind, measure, found) for (queue, kind, measure), found in histograms.items()]


def joined(rows: Iterable[LatencyRow], by: Literal["queue", "kind"] | None) -> list[LatencyRow]:
    """For each queue or each kind only: the other one is empty."""
    if by is None:
        return list(rows)
    sums: dict[tuple[str, str, str, int], int] = {}
    for row in rows:
        key = (row.queue if by == "queue" else "", row.kind if by == "kind" else "", row.measure, row.bucket)
        sums[key] = sums.get(key, 0) + row.jobs
    return [LatencyRow(*key, jobs) for key, jobs in sums.items()]


def _latency(queue: str, kind: str, measure: str, histogram: dict[int, int]) -> Latency:
    at = {share: percentile(histogram, share) for share in (0.5, 0.95, 0.99)}
    jobs = sum(histogram.values())
    return Latency(queue=queue, kind=kind, measure=measure, jobs=jobs, p50=at[0.5], p95=at[0.95], p99=at[0.99])


def percentile(histogram: dict[int, int], share: float) -> float:
    """In seconds: the middle of the bucket in which this share of the jobs is reached."""
    left = share * sum(histogram.values())
    for bucket in sorted(histogram):
        left -= histogram[bucket]
        if left <= 0:
            return float(2 ** (bucket / 2 - 0.25)) / 1000
    return 0.0
