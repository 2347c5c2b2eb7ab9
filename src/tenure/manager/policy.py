"""How many processes a pool should have: a pure function of the demand, called once per interval.

It scales up at once, because jobs are waiting. It scales down slowly, one process at a time, and only after fewer would have
been enough for `patience` measurements: starting a process costs more than keeping one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One measurement."""

    pending: int = 0
    """Waiting jobs that the pool could run. Need not be counted beyond `Bounds.most_jobs`."""

    oldest_age: float = 0.0
    """Seconds for which the oldest of them has waited."""

    running: int = 0
    """Jobs that run in the pool's processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    default_count: int
    max_count: int
    concurrency: int

    target_wait: float = 5.0
    """Seconds. If a job has waited longer, one process is added regardless of the counts: the existing ones may be busy
    with something other than claiming jobs."""

    patience: int = 30
    """Measurements in a row at which fewer processes would have been enough, before one is removed."""

    @property
    def scales(self) -> bool:
        return self.max_count > self.default_count

    @property
    def most_jobs(self) -> int:
        """The most jobs that the pool can run at a time."""
        return self.max_count * self.concurrency

    def clamp(self, count: int) -> int:
        return max(self.default_count, min(self.max_count, count))


@dataclass(frozen=True, slots=True)
class Scaler:
    """`count` is the number of processes there should be; `decide()` returns the next scaler."""

    bounds: Bounds
    count: int
    calm: int = 0
    """Measurements in a row at which fewer would have been enough."""

    @staticmethod
    def of(bounds: Bounds) -> Scaler:
        return Scaler(bounds, bounds.default_count)

    def decide(self, demand: Demand) -> Scaler:
        need = self._need(demand)
        if need > self.count:
            return replace(self, count=need, calm=0)
        if need == self.count:
            return replace(self, calm=0)
        if self.calm + 1 < self.bounds.patience:
            return replace(self, calm=self.calm + 1)
        # `calm` is kept: while the need is lower, the next measurement removes another one.
        return replace(self, count=self.count - 1, calm=self.bounds.patience)

    def _need(self, demand: Demand) -> int:
        slots = -(-(demand.pending + demand.running) // self.bounds.concurrency)
        late = demand.pending > 0 and demand.oldest_age > self.bounds.target_wait
        return self.bounds.clamp(max(slots, self.count + 1) if late else slots)
