"""What is stored about a job besides its row, as the statement that reports on it returns it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRecord:
    """A row of tenure.incidents, with the name or host:pid of the worker, if it is stored or the worker has a row."""

    at: datetime
    what: str
    attempt: int | None = None
    fence: int | None = None
    worker_id: UUID | None = None
    worker: str | None = None
    started_at: datetime | None = None
    next_at: datetime | None = None
    by: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A row of tenure.steps, without its output."""

    name: str
    what: str
    state: str
    error: str | None
    attempts: int
    started_at: datetime | None
    ended_at: datetime | None
    due_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRecord:
    percent: float | str
    """PostgreSQL writes NaN as a text."""
    message: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLineRecord:
    fence: int
    kept_at: datetime
    """When it was written to the table."""
    line: Any
    """JSON of the process that logged it, which may be of another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRecord:
    """A job that this one has enqueued."""

    id: UUID
    kind: str
    state: str
    queue: str
