"""What a worker knows of limits, and what it keeps right about them.

What is limited is not for the ordinary claim: a limited kind is left out of it, a limited queue as a whole. Every claim names the
version of the limits that its worker knows, and takes nothing under another, so nobody goes on for long by what held before.

- **declared** limits are written by whoever's code says them, at the start and whenever the table says otherwise;
- **strays** (handed in before there was such a limit, or past the door) are adopted: found like the jobs of a claim, from
  cursors of their own;
- **gates given under other rules** are given anew, or taken away with the limit;
- **what runs here** counts under the rules of now.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

from tenure.model.kinds import Registry
from tenure.model.limits import kind_limit, queue_limit
from tenure.pacing import jittered
from tenure.store import limits
from tenure.store.limits import LIMITS
from tenure.store.link import Link
from tenure.worker.cursors import Cursors, Signals

log = logging.getLogger("tenure")

LEARN_EVERY = 60.0
"""Seconds after which limits are read again, though nothing said that they changed. A job whose limit was removed while it was
scheduled, or before its transaction committed, waits no longer than that."""

DECLARE_EVERY = 60.0
"""Seconds until what the code says is said again, where the table says otherwise. Two versions of the code, while one replaces
the other, must not answer each other at once; and when the older one is gone, the newer one has the last word."""

ADOPT_EVERY = 2.0
"""Seconds between two looks for strays."""

BATCH = 1000
"""Jobs whose gate is written by one statement."""

HELD_TWICE = 3
"""How often, after a change, what runs here is looked over: a row that is locked at the moment is passed by."""


class Gates:
    def __init__(self, link: Link, kinds: Registry, queues: list[str], worker_id: str, tell: Callable[[str], None]) -> None:
        self._link = link
        self._kinds = kinds
        self._queues = queues
        self._worker_id = worker_id
        self._tell = tell
        self._strays = Cursors(queues)
        self._next_learning = 0.0
        self._next_adoption = 0.0
        self._next_declaration = 0.0
        self._held_looks = 0
        self._misgated = False
        self.version = 0
        """Of the limits as they are known here."""
        self.names: list[str] = []
        """Of the limits that concern this worker."""
        self.closed_kinds: frozenset[str] = frozenset()
        self.closed_queues: frozenset[str] = frozenset()

    def doubt(self) -> None:
        """Limits have changed: learn them before the next claim."""
        self._next_learning = 0.0

    def misgated(self) -> None:
        """Jobs stand at gates that were given under other rules."""
        self._misgated = True

    async def keep(self) -> bool:
        """What is due of all that. True when the ordinary claim has other work before it than it had."""
        changed = time.monotonic() >= self._next_learning and await self._learn()
        if self._misgated:
            await self._regate()
        if self.names and time.monotonic() >= self._next_adoption:
            await self._adopt()
        return changed

    async def _learn(self) -> bool:
        version, declared, holding, standing, unlimited = (await self._link.fetch(limits.learn(self._queues)))[0]
        if await self._declare(json.loads(declared)):
            version, _, holding, standing, unlimited = (await self._link.fetch(limits.learn(self._queues)))[0]
        self._next_learning = time.monotonic() + jittered(LEARN_EVERY)
        changed: bool = version != self.version
        self.version = version
        self._take(set(json.loads(holding)))
        if changed:
            self._held_looks = HELD_TWICE
            self._next_adoption = 0.0
            self._strays.rewind_all()
        self._misgated |= unlimited or (changed and standing)
        return changed

    async def _declare(self, told: dict[str, object]) -> bool:
        """Says what the code says, where the table says otherwise; but not in answer to another who says otherwise."""
        now = time.monotonic()
        if now < self._next_declaration:
            return False
        self._next_declaration = now + DECLARE_EVERY
        unsaid = {name: rules for name, rules in self._kinds.limits.items() if told.get(name) != rules}
        if unsaid:
            await self._link.fetch(limits.declare(unsaid))
            self._tell(LIMITS)
        return bool(unsaid)

    def _take(self, holding: set[str]) -> None:
        self.closed_kinds = frozenset(kind for kind in self._kinds if kind_limit(kind) in holding)
        self.closed_queues = frozenset(queue for queue in self._queues if queue_limit(queue) in holding)
        self.names = [*map(kind_limit, sorted(self.closed_kinds)), *map(queue_limit, sorted(self.closed_queues))]

    async def _adopt(self) -> None:
        if self._held_looks:
            self._held_looks -= 1
            await self._link.fetch(limits.adopt_held(self._worker_id))
        began = time.monotonic()
        plan = self._strays.plan(began)
        query = limits.adopt(plan.to_json(), kinds=self.closed_kinds, queues=self.closed_queues, limit=BATCH)
        rows = await self._link.fetch(query)
        found = [row[1:] for row in rows if row[1] is not None]
        now = time.monotonic()
        self._strays.learn(plan, found, BATCH, Signals.read(rows[0][0]), now=now, took=now - began)
        if found:
            log.info("%d jobs were handed in without a gate, and have theirs now", len(found))
        busy = len(found) == BATCH or self._strays.returned
        self._next_adoption = now if busy else now + ADOPT_EVERY

    async def _regate(self) -> None:
        changed, self._misgated = (await self._link.fetch(limits.regate(self._queues, limit=BATCH)))[0]
        if changed:
            log.info("%d jobs stood at gates of other rules than those of now", changed)
