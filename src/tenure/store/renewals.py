"""Renews the leases of workers, even if other tables are locked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tenure.model.errors import StoreUnavailable
from tenure.store import workers
from tenure.store.faults import Refused
from tenure.store.groups import send_or_halve
from tenure.store.link import Link
from tenure.store.query import Query
from tenure.store.workers import RenewedRow

COUNT_EVERY = 3
"""Every third renewal also counts the workers that serve the same queues."""

LONGEST_LOOK = 2.0
"""Seconds for the statement that renews and also looks at jobs and other workers. After that only the leases are renewed."""


@dataclass(frozen=True, slots=True)
class Renewal:
    renewed: frozenset[str]
    """Ids. A missing one was condemned, unless it is among `refused`."""
    suspects: bool | None = None
    """Whether jobs wait that must run alone. None: not known."""
    draining: bool = False
    """They claim no more jobs."""
    free_in: float | None = None
    """Seconds until a duty may become free."""
    alike: dict[str, int] = field(default_factory=dict)
    """By worker: how many living workers serve the same queues and kinds. Empty unless `counting`."""
    refused: dict[str, Refused] = field(default_factory=dict)
    """By worker: why PostgreSQL refuses to renew its lease. It is not condemned yet, and a later renewal may succeed."""


NOT_MEASURED: Mapping[str, float] = MappingProxyType({})


async def renew(
    link: Link,
    ids: Iterable[str],
    queues: Iterable[str],
    ttl: float,
    *,
    counting: bool,
    memory: Mapping[str, float] = NOT_MEASURED,
) -> Renewal:
    """`ttl` in seconds, `memory` in megabytes by worker. Goes before all other statements that wait for the link. Raises
    `Refused` when it is for all of them."""
    ids, queues = list(ids), list(queues)
    try:
        return await _renew_and_look(link, workers.renew(ids, queues, ttl, counting=counting, memory=memory), ttl)
    except (StoreUnavailable, Refused) as error:
        if error.cause == "connection":
            raise
    renewal = await _extend(link, ids, ttl)
    if renewal.refused and renewal.renewed:
        # Perhaps it failed only because of the refused ones: the others need not go without the rest of the answer.
        with suppress(StoreUnavailable, Refused):
            query = workers.renew(sorted(renewal.renewed), queues, ttl, counting=counting, memory=memory)
            looked = await _renew_and_look(link, query, ttl)
            return replace(looked, refused=renewal.refused)
    return renewal


async def _renew_and_look(link: Link, query: Query[RenewedRow], ttl: float) -> Renewal:
    [row] = await link.fetch(query, within=min(LONGEST_LOOK, ttl / 5), urgent=True)
    return Renewal(frozenset(row.renewed), row.suspects, row.draining, row.free_in, json.loads(row.alike or "{}"))


async def _extend(link: Link, ids: list[str], ttl: float) -> Renewal:
    """The leases only. A worker whose row PostgreSQL refuses to change does not cost the others theirs."""
    renewed: set[str] = set()
    refused: dict[str, Refused] = {}

    async def send(group: list[str]) -> None:
        renewed.update(await link.fetch(workers.extend(group, ttl), urgent=True))

    async def refuse(worker_id: str, error: Refused) -> None:
        refused[worker_id] = error

    await send_or_halve(ids, send, refuse)
    if refused and len(refused) == len(ids):
        raise next(iter(refused.values()))
    return Renewal(frozenset(renewed), refused=refused)
