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
from dataclasses import replace
from typing import Any

from tenure.model.kinds import Registry
from tenure.model.limits import kind_limit, queue_limit
from tenure.periodic import jittered
from tenure.store import limits
from tenure.store.isolation import RefusedRows
from tenure.store.limits import LIMITS
from tenure.store.link import Link
from tenure.store.query import Pick
from tenure.worker.claim.cursors import ClaimReply, Cursors

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

REGATE_REST = 2.0
"""Seconds until gates are looked over again where nothing could be changed: the rows are locked, or PostgreSQL refuses them."""

HELD_RECHECKS = 3
"""How often, after a change, what runs here is looked over: a row that is locked at the moment is passed by."""


class KnownLimits:
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
        self._next_regating = 0.0
        self._refused = RefusedRows("to write the limit group of a job")
        self.version = 0
        """Of the limits as they are known here."""
        self.names: list[str] = []
        """Of the limits that concern this worker."""
        self.closed_kinds: frozenset[str] = frozenset()
        self.closed_queues: frozenset[str] = frozenset()

    def doubt(self) -> None:
        """Limits have changed: learn them before the next claim."""
        self._next_learning = 0.0

    def misgated(self) -> bool:
        """Jobs stand at gates that were given under other rules. Whether they are looked over before the next claim."""
        self._misgated = True
        return time.monotonic() >= self._next_regating

    async def keep(self) -> bool:
        """What is due of all that. True when the ordinary claim has other work before it than it had."""
        changed = time.monotonic() >= self._next_learning and await self._learn()
        if self._misgated and time.monotonic() >= self._next_regating:
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
            self._held_looks = HELD_RECHECKS
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
            await self._refused.run(self._adopt_held)
        began = time.monotonic()
        plan = self._strays.plan(began)

        async def send(pick: Pick) -> list[tuple[Any, ...]]:
            kinds, queues = self.closed_kinds, self.closed_queues
            return await self._link.fetch(limits.adopt(plan.to_json(), kinds=kinds, queues=queues, limit=BATCH, pick=pick))

        answers = await self._refused.run(send, lambda rows: list(json.loads(rows[0][0] or "[]")))
        found = [row[1:] for rows in answers for row in rows if row[1] is not None]
        signals = [ClaimReply.read(rows[0][0]) for rows in answers]
        now = time.monotonic()
        picked = sum(one.picked for one in signals)
        self._strays.learn(plan, found, BATCH, replace(signals[-1], picked=picked), now=now, took=now - began)
        if found:
            log.info("%d jobs were handed in without a gate, and have theirs now", len(found))
        busy = len(found) == BATCH or self._strays.returned
        self._next_adoption = now if busy else now + ADOPT_EVERY

    async def _adopt_held(self, pick: Pick) -> tuple[Any, ...]:
        return (await self._link.fetch(limits.adopt_held(self._worker_id, pick=pick)))[0]

    async def _regate(self) -> None:
        async def send(pick: Pick) -> tuple[Any, ...]:
            return (await self._link.fetch(limits.regate(self._queues, limit=BATCH, pick=pick)))[0]

        answers = await self._refused.run(send)
        changed = sum(answer[0] for answer in answers)
        self._misgated = any(answer[1] for answer in answers)
        self._next_regating = 0.0 if changed else time.monotonic() + REGATE_REST
        if changed:
            log.info("%d jobs stood at gates of other rules than those of now", changed)
