"""The limits that a worker knows, and how it keeps limited jobs in their groups.

The ordinary claim leaves out limited kinds and limited queues. Every claim sends the version of the limits that its worker knows,
and takes nothing if the database has another one, so no worker claims by outdated limits.

- **declared** limits are written by the workers whose code declares them, at the start and when the table differs;
- **strays** (enqueued before there was such a limit, or by other means than `tenure.enqueue`) are adopted: found like the jobs
  of a claim, with separate cursors;
- **groups assigned under other rules** are assigned again, or removed with the limit;
- **jobs that run here** count under the current rules.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from tenure.model.kinds import Registry
from tenure.model.limits import LimitRules, kind_limit, queue_limit
from tenure.model.wakeup import Wakeup
from tenure.periodic import jittered
from tenure.store import limits
from tenure.store.isolation import RefusedRows
from tenure.store.limits import AdoptedHeldRow, AdoptedRow, RegroupedRow
from tenure.store.link import Link
from tenure.store.query import Pick
from tenure.worker.claim.cursors import Cursors

log = logging.getLogger("tenure")

LEARN_EVERY = 60.0
"""Seconds after which limits are read again without a reported change. A job whose limit was removed while it was scheduled, or
before its transaction committed, waits no longer than that."""

DECLARE_EVERY = 60.0
"""Seconds until declared limits are written again where the table differs. During a deployment, two versions of the code must not
overwrite each other at once; when the older one is gone, the newer one wins."""

ADOPT_EVERY = 2.0
"""Seconds between two searches for strays."""

BATCH = 1000
"""Jobs whose limit group is written by one statement."""

REGROUP_REST = 2.0
"""Seconds until groups are checked again if none could be changed: the rows are locked, or PostgreSQL refuses them."""

HELD_RECHECKS = 3
"""How often running jobs are checked after a change: rows that are locked are skipped."""


class KnownLimits:
    def __init__(self, link: Link, kinds: Registry, queues: list[str], worker_id: str, notify: Callable[[Wakeup], None]) -> None:
        self._link = link
        self._kinds = kinds
        self._queues = queues
        self._worker_id = worker_id
        self._notify = notify
        self._strays = Cursors(queues)
        self._next_learning = 0.0
        self._next_adoption = 0.0
        self._next_declaration = 0.0
        self._held_looks = 0
        self._outdated_groups = False
        self._next_regrouping = 0.0
        self._refused = RefusedRows("to write the limit group of a job")
        self.version = 0
        """Of the limits that this worker knows."""
        self.names: list[str] = []
        """Of the limits that apply to this worker's kinds and queues."""
        self.closed_kinds: frozenset[str] = frozenset()
        self.closed_queues: frozenset[str] = frozenset()

    def doubt(self) -> None:
        """Limits may have changed: read them before the next claim."""
        self._next_learning = 0.0

    def report_outdated_groups(self) -> bool:
        """Jobs are in groups that were assigned under other rules. Returns whether they are checked before the next claim."""
        self._outdated_groups = True
        return time.monotonic() >= self._next_regrouping

    async def keep(self) -> bool:
        """Does what is due. True when the ordinary claim may find other jobs than before."""
        changed = time.monotonic() >= self._next_learning and await self._learn()
        if self._outdated_groups and time.monotonic() >= self._next_regrouping:
            await self._regroup()
        if self.names and time.monotonic() >= self._next_adoption:
            await self._adopt()
        return changed

    async def _learn(self) -> bool:
        [found] = await self._link.fetch(limits.learn(self._queues))
        if await self._declare(found.declared):
            [found] = await self._link.fetch(limits.learn(self._queues))
        self._next_learning = time.monotonic() + jittered(LEARN_EVERY)
        changed = found.version != self.version
        self.version = found.version
        self._take(set(found.in_force))
        if changed:
            self._held_looks = HELD_RECHECKS
            self._next_adoption = 0.0
            self._strays.rewind_all()
        self._outdated_groups |= found.outdated or (changed and found.waiting)
        return changed

    async def _declare(self, declared: dict[str, LimitRules]) -> bool:
        """Writes the declared limits where the table differs, but not right after another process wrote something else."""
        now = time.monotonic()
        if now < self._next_declaration:
            return False
        self._next_declaration = now + DECLARE_EVERY
        different = {name: rules for name, rules in self._kinds.limits.items() if declared.get(name) != rules}
        if different:
            await self._link.fetch(limits.declare(different))
            self._notify(Wakeup.limits_changed())
        return bool(different)

    def _take(self, in_force: set[str]) -> None:
        self.closed_kinds = frozenset(kind for kind in self._kinds.served if kind_limit(kind) in in_force)
        self.closed_queues = frozenset(queue for queue in self._queues if queue_limit(queue) in in_force)
        self.names = [*map(kind_limit, sorted(self.closed_kinds)), *map(queue_limit, sorted(self.closed_queues))]

    async def _adopt(self) -> None:
        if self._held_looks:
            self._held_looks -= 1
            await self._refused.run(self._adopt_held)
        began = time.monotonic()
        plan = self._strays.plan(began)

        async def send(pick: Pick) -> AdoptedRow:
            kinds, queues = self.closed_kinds, self.closed_queues
            return (await self._link.fetch(limits.adopt(plan.to_json(), kinds=kinds, queues=queues, limit=BATCH, pick=pick)))[0]

        answers = await self._refused.run(send)
        found = [job for answer in answers for job in answer.jobs]
        now = time.monotonic()
        picked = sum(answer.reply.picked for answer in answers)
        self._strays.learn(plan, found, BATCH, replace(answers[-1].reply, picked=picked), now=now, took=now - began)
        if found:
            log.info("jobs without a limit group were assigned to their groups", extra={"jobs": len(found)})
        busy = len(found) == BATCH or self._strays.returned
        self._next_adoption = now if busy else now + ADOPT_EVERY

    async def _adopt_held(self, pick: Pick) -> AdoptedHeldRow:
        return (await self._link.fetch(limits.adopt_held(self._worker_id, pick=pick)))[0]

    async def _regroup(self) -> None:
        async def send(pick: Pick) -> RegroupedRow:
            return (await self._link.fetch(limits.regroup(self._queues, limit=BATCH, pick=pick)))[0]

        answers = await self._refused.run(send)
        changed = sum(answer.changed for answer in answers)
        self._outdated_groups = any(answer.more for answer in answers)
        self._next_regrouping = 0.0 if changed else time.monotonic() + REGROUP_REST
        if changed:
            log.info("jobs were assigned to other limit groups after a limit change", extra={"jobs": changed})
