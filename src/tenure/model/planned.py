"""The data that Tenure itself stores with a job, in its `system` column: the planned time, and the job that it repeats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PlannedTime:
    schedule: str
    at: datetime
    late: bool
    """Enqueued more than a minute after it."""


def planned_of(system: Any) -> PlannedTime | None:
    """None for a job without a schedule."""
    match system:
        case {"schedule": {"name": str(name), "for": str(at), "late": bool(late)}}:
            try:
                return PlannedTime(name, datetime.fromisoformat(at), late)
            except ValueError:
                return None
    return None


def retry_of(system: Any) -> str | None:
    """The id of the finished job that this one repeats."""
    match system:
        case {"retry_of": str(job_id)}:
            return job_id
    return None
