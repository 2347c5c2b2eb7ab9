"""How many processes a pool should have: a pure decision, taken once an interval.

Up at once, because jobs are waiting. Down slowly, one process at a time, and only when fewer would have done for a while:
starting a process costs more than keeping one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What was seen at one look."""

    pending: int = 0
    """Jobs that wait and that the pool could run. Need not be counted further than the pool could ever make use of."""

    oldest_age: float = 0.0
    """Seconds that the oldest of them has been waiting."""

    running: int = 0
    """Jobs under way in the pool's processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    default_count: int
    max_count: int
    concurrency: int

    target_wait: float = 5.0
    """When a job has waited longer, one more process is tried, whatever the counts say: those that are there may be busy
    with something else than taking jobs."""

    patience: int = 30
    """Looks in a row at which fewer processes would have done, before there is one less."""

    @property
    def scales(self) -> bool:
        return self.max_count > self.default_count

    @property
    def most_jobs(self) -> int:
        """More of them at a time than this pool could ever run."""
        return self.max_count * self.concurrency

    def clamp(self, count: int) -> int:
        return max(self.default_count, min(self.max_count, count))


@dataclass(frozen=True, slots=True)
class Scaler:
    """`count` is how many processes there should be; `decide` gives the next one."""

    bounds: Bounds
    count: int
    calm: int = 0
    """Looks in a row at which fewer would have done."""

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
        # It stays calm: while the need is lower, the next one goes at the next look.
        return replace(self, count=self.count - 1, calm=self.bounds.patience)

    def _need(self, demand: Demand) -> int:
        slots = -(-(demand.pending + demand.running) // self.bounds.concurrency)
        late = demand.pending > 0 and demand.oldest_age > self.bounds.target_wait
        return self.bounds.clamp(max(slots, self.count + 1) if late else slots)
