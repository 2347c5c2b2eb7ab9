"""The statement that finds failed jobs of all kinds, as a value."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.query import Query


class FailureRow(NamedTuple):
    id: UUID
    kind: str
    queue: str
    state: str
    attempt: int
    crashes: int
    at: datetime
    """When its last run began; when it ended, if the job failed for good."""
    error: str | None
    """The beginning of it."""


def find_all(since: datetime, most: int) -> Query[FailureRow]:
    return Query("failures/find_failures", FailureRow, {"since": since, "most": most})
