"""A job at the time of the query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.model.failures import Failure
from tenure.model.payloads import read_json
from tenure.model.states import State
from tenure.model.system_data import SystemData
from tenure.store.jobs import JobRow


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job at the time of the query."""

    id: UUID
    kind: str
    queue: str
    state: State
    priority: int
    capability: str | None
    attempt: int
    max_attempts: int
    crashes: int
    fence: int
    worker_id: UUID | None
    enqueued_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    """The error of the last failed attempt, with its traceback; see also `error_type` and `error_message`."""
    input: Any
    output: Any
    timeout: float | None
    """Seconds, if this call overrides the timeout of its kind."""
    key: str | None
    parent_id: UUID | None
    """The job whose handler enqueued this one."""
    enqueued_by: str | None
    auth: Any
    meta: Any
    system: Any = None
    """Set by Tenure: `schedule`, `retry_of`, `headers`."""
    limit_group: str | None = None
    """The groups of its limits, one per line. None: it is not limited, or it is over."""
    progress_percent: float = 0.0
    progress_message: str | None = None
    failed_at: datetime | None = None
    """When a failed job or a dead letter failed for good."""
    chain_id: UUID | None = None
    """The chain that it is a link of: its own id if it starts the chain."""
    next_id: UUID | None = None
    """The next link of the chain, which it created by returning `Continue`."""
    expires_at: datetime | None = None
    """When it is canceled if it was not started. None: it does not expire, was started, or is over."""
    heartbeat_at: datetime | None = None
    """When the worker that runs it last renewed its lease. None: no worker runs it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What hooks around its enqueue have added, such as the context of a trace."""
        return SystemData.of(self.system).headers

    @property
    def failure(self) -> Failure | None:
        """`error` in its parts. None: there is no error, or the job was canceled."""
        if self.error is None or self.state == State.CANCELED:
            return None
        return Failure.read(self.error, is_reason=self.state == State.FAILED)

    @property
    def error_type(self) -> str | None:
        """The class of the last exception: `CardDeclined`. None if no exception was raised."""
        return None if self.failure is None else self.failure.type

    @property
    def error_class(self) -> str | None:
        """The same with its module: `shop.errors.CardDeclined`."""
        return None if self.failure is None else self.failure.path

    @property
    def error_message(self) -> str | None:
        """The message without the traceback, for display."""
        return None if self.failure is None else self.failure.message

    @staticmethod
    def from_row(row: JobRow) -> JobStatus:
        values = row._asdict()
        values["state"] = State(values["state"])
        if values["state"] != State.RUNNING:
            values["heartbeat_at"] = None
        for name in ("input", "output", "auth", "meta", "system"):
            values[name] = None if values[name] is None else read_json(values[name])
        if not isinstance(values["system"], dict):  # only SQL can have written it
            values["system"] = None
        if not math.isfinite(values["progress_percent"]):
            values["progress_percent"] = 0.0
        return JobStatus(**values)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: _plain(getattr(self, name)) for name in (*_NAMES, "error_type", "error_class", "error_message")}


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress that a job reports."""

    percent: float
    message: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class JobUpdate:
    """One step of `handle.watch()`."""

    status: JobStatus
    progress: Progress | None


_NAMES = [field.name for field in fields(JobStatus)]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID | State) else value
