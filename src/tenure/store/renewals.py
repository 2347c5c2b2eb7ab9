"""Renews the leases of workers, even if other tables are locked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from tenure.model.errors import StoreUnavailable
from tenure.store import workers
from tenure.store.faults import Refused
from tenure.store.link import Link

LONGEST_LOOK = 2.0
"""Seconds for the statement that renews and also looks at jobs and other workers. After that only the leases are renewed."""


@dataclass(frozen=True, slots=True)
class Renewal:
    renewed: frozenset[str]
    """Ids. A missing one was condemned."""
    suspects: bool | None = None
    """Whether jobs wait that must run alone. None: not known."""
    free_in: float | None = None
    """Seconds until a duty may become free."""
    alike: dict[str, int] = field(default_factory=dict)
    """By worker: how many living workers serve the same queues and kinds. Empty unless `counting`."""


async def renew(link: Link, ids: Iterable[str], queues: Iterable[str], ttl: float, *, counting: bool) -> Renewal:
    """`ttl` in seconds. Goes before all other statements that wait for the link."""
    ids = list(ids)
    try:
        query = workers.renew(ids, queues, ttl, counting=counting)
        [(renewed, suspects, free_in, alike)] = await link.fetch(query, within=min(LONGEST_LOOK, ttl / 5), urgent=True)
    except (StoreUnavailable, Refused) as error:
        if error.cause == "connection":
            raise
        rows = await link.fetch(workers.extend(ids, ttl), urgent=True)
        return Renewal(frozenset(worker_id for (worker_id,) in rows))
    return Renewal(frozenset(renewed), suspects, free_in, json.loads(alike or "{}"))
