"""What a handler sees of the chains that its job has waited for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tenure.model.errors import JobCanceled, JobFailed
from tenure.model.kinds import Registry
from tenure.model.states import State

if TYPE_CHECKING:
    from tenure.store.blockers import BlockerRow

MOST_BLOCKERS = 1_000_000
"""Chains whose results are read for one handler."""


def blocker_result(row: BlockerRow, kinds: Registry) -> Any:
    """The result of the chain, typed if this app defines the job of its last link; an exception if it did not complete."""
    job_id, kind = row.job_id or row.chain_id, row.kind or "unknown"
    if row.state == State.COMPLETED:
        output = "null" if row.output is None else row.output
        return kinds[kind].output.decode(output) if kind in kinds else json.loads(output)
    if row.state == State.CANCELED:
        return JobCanceled(job_id, kind, row.error)
    return JobFailed(job_id, kind, row.state or "unknown", row.error)
