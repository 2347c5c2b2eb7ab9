"""Durable background jobs on PostgreSQL: held under fenced leases, never lost."""

from tenure.app import Tenure
from tenure.client.handle import Handle, JobNotFound, JobStatus
from tenure.client.job import Call, Job
from tenure.model.errors import (
    ConfigError,
    InvalidInput,
    InvalidOutput,
    InvalidPayload,
    LeaseLost,
    NotEnqueued,
    SchemaMismatch,
    StoreUnavailable,
    TenureError,
    UnknownKind,
)
from tenure.model.outcomes import Cancel, Fail, Snooze
from tenure.model.priorities import Priority
from tenure.model.retries import Retry
from tenure.model.states import State
from tenure.version import __version__
from tenure.worker.runs import Context
from tenure.worker.signals import Aborted, Signal

__all__ = [
    "Aborted",
    "Call",
    "Cancel",
    "ConfigError",
    "Context",
    "Fail",
    "Handle",
    "InvalidInput",
    "InvalidOutput",
    "InvalidPayload",
    "Job",
    "JobNotFound",
    "JobStatus",
    "LeaseLost",
    "NotEnqueued",
    "Priority",
    "Retry",
    "SchemaMismatch",
    "Signal",
    "Snooze",
    "State",
    "StoreUnavailable",
    "Tenure",
    "TenureError",
    "UnknownKind",
    "__version__",
]
