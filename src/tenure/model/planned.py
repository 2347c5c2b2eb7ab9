"""The planned time for which a schedule enqueued a job. It is stored in the job's `meta`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Planned:
    schedule: str
    at: datetime
    late: bool
    """Enqueued more than a minute after it."""


def planned_of(meta: Any) -> Planned | None:
    """None for jobs without a schedule, even if their `meta` looks similar."""
    match meta:
        case {"schedule": {"name": str(name), "for": str(at), "late": bool(late)}}:
            try:
                return Planned(name, datetime.fromisoformat(at), late)
            except ValueError:
                return None
    return None
