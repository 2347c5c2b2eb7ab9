"""Looks how much work waits, and tells each pool how many processes it should have."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from tenure.manager.policy import Demand, Scaler
from tenure.manager.pool import Pool
from tenure.store import queues
from tenure.store.link import Link
from tenure.store.query import Query, T
from tenure.store.queues import Wants

log = logging.getLogger("tenure")

STRANGERS = 1000
"""So many jobs that the pool cannot run are looked past, in each queue and priority."""

LARGEST_SHARE = 0.05
"""Of the time is spent on looking: an answer that takes long, because an old snapshot keeps dead rows from being removed,
makes the interval longer instead of the database busier."""


SLOW = 0.5
"""Seconds. After a look that took longer, the next one has its own connection, so that it does not delay the renewal."""


class Scaling:
    def __init__(self, link: Link, pools: Sequence[Pool], interval: float) -> None:
        self._shared_link = link
        self._own_link = Link(link.database, "scale", hot=True)
        self._is_slow = False
        self._pools = [pool for pool in pools if pool.plan.max_count > pool.plan.default_count]
        self._interval = interval
        self._scalers: dict[str, Scaler] = {}
        self.looks = 0

    @property
    def is_needed(self) -> bool:
        return bool(self._pools)

    async def turn(self) -> float:
        """One look, one decision for each pool. Gives the seconds to the next look."""
        asked = [pool for pool in self._pools if pool.hello is not None]
        if not asked:
            return self._interval
        began = time.monotonic()
        scalers = {pool.name: self._scaler(pool) for pool in asked}
        look = STRANGERS + max(scaler.bounds.most_jobs for scaler in scalers.values())
        rows = await self._measure(queues.measure_demand(map(_wants, asked), look=look))
        self.looks += 1
        waiting = {row.pool: (row.jobs, row.seconds) for row in rows}
        for pool in asked:
            jobs, age = waiting.get(pool.name, (0, 0.0))
            self._decide(pool, scalers[pool.name], Demand(pending=jobs, oldest_age=age, running=pool.running))
        return max(self._interval, (time.monotonic() - began) / LARGEST_SHARE)

    async def close(self) -> None:
        await self._own_link.close()

    async def _measure(self, query: Query[T]) -> list[T]:
        began, was_slow = time.monotonic(), self._is_slow
        self._is_slow = True  # also if it is canceled
        rows = await (self._own_link if was_slow else self._shared_link).fetch(query)
        self._is_slow = time.monotonic() - began > SLOW
        if was_slow and not self._is_slow:
            await self._own_link.close()
        return rows

    def _scaler(self, pool: Pool) -> Scaler:
        """The concurrency is known once a process has said it, and may be another after a restart."""
        assert pool.hello is not None
        bounds = pool.plan.bounds(pool.hello.concurrency)
        before = self._scalers.get(pool.name) or Scaler.of(bounds)
        return before if before.bounds == bounds else Scaler(bounds, before.count, before.calm)

    def _decide(self, pool: Pool, scaler: Scaler, seen: Demand) -> None:
        after = self._scalers[pool.name] = scaler.decide(seen)
        facts = {
            "pool": pool.name,
            "look": self.looks,
            "pending": seen.pending,
            "oldest_seconds": round(seen.oldest_age, 1),
            "running": seen.running,
            "processes_before": scaler.count,
            "processes": after.count,
        }
        if after.count == scaler.count:
            log.debug("pool keeps its size", extra=facts)
        else:
            log.info("pool scaled", extra=facts)
        pool.resize(after.count)


def _wants(pool: Pool) -> Wants:
    assert pool.hello is not None
    return Wants(pool=pool.name, queues=pool.hello.queues, kinds=pool.hello.kinds, capabilities=pool.hello.capabilities)
