"""The statements about limits, and about jobs that stand at their gates, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tenure.store.query import ALL, Pick, Query, array_literal

LIMITS = "limits"
"""The word that a limit was changed: workers learn them anew."""


def learn(queues: Iterable[str]) -> Query:
    """Gives (version, what is declared by name, the names that hold, whether jobs stand at gates)."""
    return Query("limits/learn_limits", {"queues": array_literal(list(queues))})


def declare(limits: Mapping[str, Mapping[str, Any]]) -> Query:
    told = [{"name": name, "rules": rules} for name, rules in limits.items()]
    return Query("limits/declare_limits", {"limits": json.dumps(told)})


def override(name: str, rules: Mapping[str, Any], by: str | None) -> Query:
    return Query("limits/override_limit", {"name": name, "rules": json.dumps(rules), "by": by})


def reset(name: str, *, declared: bool = False) -> Query:
    """With `declared`, the code's word is taken back as well."""
    return Query("limits/reset_limit", {"name": name, "all": declared})


def find() -> Query:
    return Query("limits/find_limits")


def lock(names: Iterable[str], queues: Iterable[str]) -> Query:
    """Gives (name, whether it was had) of those under which something may be claimed."""
    return Query("limits/lock_limits", {"names": array_literal(list(names)), "queues": array_literal(list(queues))})


def claim(
    *,
    worker_id: str,
    claim_id: str,
    locked: Iterable[str],
    queues: str,
    steps: int,
    limit: int,
    kinds: str,
    capabilities: str,
    leases: str,
    which: str,
    now: datetime | None = None,
) -> Query:
    """To be run in the transaction that ran `lock`."""
    values = {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "locked": array_literal(list(locked)),
        "queues": queues,
        "steps": steps,
        "limit": limit,
        "kinds": kinds,
        "capabilities": capabilities,
        "leases": leases,
        "which": which,
        "now": now,
    }
    return Query("limits/claim_gated", values)


def adopt(lanes: str, *, kinds: Iterable[str], queues: Iterable[str], limit: int, pick: Pick = ALL) -> Query:
    values = {"lanes": lanes, "kinds": array_literal(list(kinds)), "queues": array_literal(list(queues)), **pick.values(limit)}
    return Query("limits/adopt_jobs", values)


def adopt_held(worker_id: str, *, pick: Pick = ALL) -> Query:
    """Gives (how many were changed, ids)."""
    values = {"worker_id": worker_id, **pick.values(0)}
    del values["limit"]
    return Query("limits/adopt_held", values)


def regate(queues: Iterable[str], *, limit: int, pick: Pick = ALL) -> Query:
    """Gives (how many were changed, whether there may be more, ids)."""
    return Query("limits/regate_jobs", {"queues": array_literal(list(queues)), **pick.values(limit)})
