"""What the name of a job's kind tells the checker. `tenure.chaos.jobs` and `tenure.chaos.workflows` define the kinds."""

from __future__ import annotations

import re
from functools import cache

ATOMIC = "atomic"
"""The kind that writes an effect and completes in one transaction."""

ORDERED = "ordered"
"""The kind that is enqueued together with an order row, in one transaction of the caller."""

IN_PROCESS = "in_process"
"""The kind that runs in a process of its own, which must be started first if none is idle."""

STUBBORN = "stubborn"
"""Kinds with this prefix ignore their cancellation; their slot is used by other jobs meanwhile."""

CHANGING = "changing"
"""Kinds with this prefix are under limits that are set, changed and removed while the campaign runs."""

REFUSED = "refused"
"""Kinds with this prefix have rows that PostgreSQL sometimes refuses to change."""

CHAINED = "chained"
"""Kinds with this prefix are links of chains, and jobs that wait for them. Only the first link is requested by a client."""

CHAIN_STARTS = "chained"
"""The kind of a first link."""

WORKFLOW = "workflow"
"""Kinds with this prefix are workflows, and jobs that they start."""

CHILD = "workflow_child"
"""The kind of the jobs that workflows start. Clients do not request it."""

_LIMITED = re.compile(r"limited_(\d+)")


@cache
def limit_of(kind: str) -> int | None:
    """How many jobs of a kind may be held at the same time, during the whole campaign."""
    found = _LIMITED.fullmatch(kind)
    return int(found[1]) if found else None


@cache
def is_claimed_in_order(kind: str) -> bool:
    """False for limited kinds, which wait until their limit has room, and for refused kinds, which are skipped."""
    return limit_of(kind) is None and not kind.startswith((CHANGING, REFUSED))
