"""Durable background jobs on PostgreSQL: held under fenced leases, never lost."""

from tenure.app import Tenure
from tenure.client.client import Client
from tenure.client.explain import Explanation
from tenure.client.facts import Reason
from tenure.client.handle import Handle
from tenure.client.job import Call, Job
from tenure.client.overview import LeaderStatus, QueueStatus, Stats, WorkerStatus
from tenure.client.pages import Page
from tenure.client.report.life import Report
from tenure.client.status import JobStatus, JobUpdate, Progress
from tenure.model.errors import (
    ConfigError,
    InvalidInput,
    InvalidOutput,
    InvalidPayload,
    JobCanceled,
    JobFailed,
    JobNotFound,
    JobsLocked,
    JobUnfinished,
    LeaseLost,
    NotEnqueued,
    NotPossible,
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
    "Client",
    "ConfigError",
    "Context",
    "Event",
    "Explanation",
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
    "JobsLocked",
    "LeaderDeposed",
    "LeaderElected",
    "LeaderStatus",
    "LeaseLost",
    "NotEnqueued",
    "NotPossible",
    "Page",
    "Priority",
    "Progress",
    "QueueStatus",
    "Reason",
    "Report",
    "ResultTimeout",
    "Retry",
    "RunAbandoned",
    "RunLost",
    "SchemaMismatch",
    "Signal",
    "Snooze",
    "State",
    "Stats",
    "StoreUnavailable",
    "Tenure",
    "TenureError",
    "UnknownKind",
    "WorkerDied",
    "WorkerLeaseLost",
    "WorkerStarted",
    "WorkerStatus",
    "WorkerStopped",
    "__version__",
]
