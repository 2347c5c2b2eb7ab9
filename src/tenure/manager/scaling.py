"""Measures how many jobs wait, and resizes each pool accordingly."""

from __future__ import annotations

import asyncio
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

OTHER_JOBS = 1000
"""Jobs that the pool cannot run and that the measurement skips, in each queue and priority."""

LARGEST_SHARE = 0.05
"""Share of the time spent on measuring. If a measurement takes long, because an old snapshot keeps dead rows from being
removed, the interval becomes longer instead of the database busier."""


SLOW = 0.5
"""Seconds. After a measurement that took longer, the next one has its own connection, so that it does not delay the renewal."""


class Scaling:
    def __init__(self, link: Link, pools: Sequence[Pool], interval: float, stopping: asyncio.Event) -> None:
        """`stopping`: set when the supervisor stops; its pools are not resized any more."""
        self._shared_link = link
        self._own_link = Link(link.database, "scale", hot=True)
        self._is_slow = False
        self._pools = [pool for pool in pools if pool.plan.max_count > pool.plan.default_count]
        self._interval = interval
        self._stopping = stopping
        self._scalers: dict[str, Scaler] = {}
        self.measurements = 0
        self.held = False
        """The processes claim no jobs, so more of them would not help: no pool changes its size."""

    @property
    def is_needed(self) -> bool:
        return bool(self._pools)

    async def turn(self) -> float:
        """One measurement, and one decision for each pool. Returns the seconds until the next measurement."""
        pools = [pool for pool in self._pools if pool.hello is not None]
        if not pools or self.held:
            return self._interval
        began = time.monotonic()
        scalers = {pool.name: self._scaler(pool) for pool in pools}
        look = OTHER_JOBS + max(scaler.bounds.most_jobs for scaler in scalers.values())
        rows = await self._measure(queues.measure_demand(map(_wants, pools), look=look))
        self.measurements += 1
        waiting = {row.pool: (row.jobs, row.seconds) for row in rows}
        if self._stopping.is_set():  # jobs wait because their processes stop
            return self._interval
        for pool in pools:
            jobs, age = waiting.get(pool.name, (0, 0.0))
            self._decide(pool, scalers[pool.name], Demand(pending=jobs, oldest_age=age, running=pool.running))
        return max(self._interval, (time.monotonic() - began) / LARGEST_SHARE)

    async def close(self) -> None:
        await self._own_link.close()

    async def _measure(self, query: Query[T]) -> list[T]:
        began, was_slow = time.monotonic(), self._is_slow
        self._is_slow = True  # stays so if the statement is canceled
        rows = await (self._own_link if was_slow else self._shared_link).fetch(query)
        self._is_slow = time.monotonic() - began > SLOW
        if was_slow and not self._is_slow:
            await self._own_link.close()
        return rows

    def _scaler(self, pool: Pool) -> Scaler:
        """A process reports the concurrency, and it may change with a restart."""
        assert pool.hello is not None
        bounds = pool.plan.bounds(pool.hello.concurrency)
        before = self._scalers.get(pool.name) or Scaler.of(bounds)
        return before if before.bounds == bounds else Scaler(bounds, before.count, before.calm)

    def _decide(self, pool: Pool, scaler: Scaler, seen: Demand) -> None:
        after = self._scalers[pool.name] = scaler.decide(seen)
        facts = {
            "pool": pool.name,
            "measurement": self.measurements,
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
