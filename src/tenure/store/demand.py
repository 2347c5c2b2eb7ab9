"""How much work waits for whom, as a statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from tenure.store.query import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a pool can run."""

    pool: str
    queues: Sequence[str]
    kinds: Sequence[str]
    capabilities: Sequence[str] = ()


def measure(wants: Iterable[Wants], *, look: int, now: datetime | None = None) -> Query:
    """Gives (pool, jobs, seconds). `look` is how many jobs of each priority are looked at: no more are counted."""
    pools = json.dumps([asdict(one) for one in wants])
    return Query("queues/measure_demand", {"pools": pools, "look": look, "now": now})
