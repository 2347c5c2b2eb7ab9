"""Durable background jobs on PostgreSQL: held under fenced leases, never lost."""

from tenure.app import Tenure
from tenure.client.handle import Handle
from tenure.client.job import Call, Job
from tenure.client.status import JobStatus, JobUpdate, Progress
from tenure.model.errors import (
    ConfigError,
    InvalidInput,
    InvalidOutput,
    InvalidPayload,
    JobCanceled,
    JobFailed,
    JobNotFound,
    JobUnfinished,
    LeaseLost,
    NotEnqueued,
    ResultTimeout,
    SchemaMismatch,
    StoreUnavailable,
    TenureError,
    UnknownKind,
)
from tenure.model.events import (
    Event,
    JobEnqueued,
    JobSettled,
    JobStarted,
    LeaderDeposed,
    LeaderElected,
    RunAbandoned,
    RunLost,
    WorkerDied,
    WorkerLeaseLost,
    WorkerStarted,
    WorkerStopped,
)
from tenure.model.outcomes import Cancel, Fail, Snooze
from tenure.model.priorities import Priority
from tenure.model.retries import Retry
from tenure.model.states import State
from tenure.version import __version__
from tenure.worker.context import Context
from tenure.worker.middleware import CallNext
from tenure.worker.signals import Aborted, Signal

__all__ = [
    "Aborted",
    "Call",
    "CallNext",
    "Cancel",
    "ConfigError",
    "Context",
    "Event",
    "Fail",
    "Handle",
    "InvalidInput",
    "InvalidOutput",
    "InvalidPayload",
    "Job",
    "JobCanceled",
    "JobEnqueued",
    "JobFailed",
    "JobNotFound",
    "JobSettled",
    "JobStarted",
    "JobStatus",
    "JobUnfinished",
    "JobUpdate",
    "LeaderDeposed",
    "LeaderElected",
    "LeaseLost",
    "NotEnqueued",
    "Priority",
    "Progress",
    "ResultTimeout",
    "Retry",
    "RunAbandoned",
    "RunLost",
    "SchemaMismatch",
    "Signal",
    "Snooze",
    "State",
    "StoreUnavailable",
    "Tenure",
    "TenureError",
    "UnknownKind",
    "WorkerDied",
    "WorkerLeaseLost",
    "WorkerStarted",
    "WorkerStopped",
    "__version__",
]
