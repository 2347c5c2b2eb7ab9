"""What it means for the caller that PostgreSQL refuses a job."""

from __future__ import annotations

from uuid import UUID

from tenure.model.current import current_run
from tenure.model.errors import InvalidPayload, LeaseLost, TenureError
from tenure.store.faults import Refused

STALE_PARENT = "P0T01"  # raised by tenure.enqueue


def explained(error: Refused) -> TenureError:
    run = current_run.get()
    if error.sqlstate == STALE_PARENT and run is not None:
        return LeaseLost(UUID(run.job_id), "taken_by_another_worker")
    return InvalidPayload(f"PostgreSQL refuses it: {error}")
