"""Durable background jobs and workflows on PostgreSQL: held under fenced leases, never lost.

The names below are imported when they are first used: `tenure --help` needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tenure.version import __version__

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.client.client import Client
    from tenure.client.explain import Explanation
    from tenure.client.facts import Reason
    from tenure.client.handle import Handle
    from tenure.client.job import Call, Job
    from tenure.client.leases import Lease, SyncLease
    from tenure.client.limits import LimitStatus
    from tenure.client.overview import LeaderStatus, QueueStatus, Stats, WorkerStatus
    from tenure.client.pages import Page
    from tenure.client.rates import Latency, MinuteCount
    from tenure.client.report.life import Report
    from tenure.client.schedule_status import ScheduleStatus, Tick
    from tenure.client.schedules import Schedules
    from tenure.client.status import JobStatus, JobUpdate, Progress
    from tenure.flow.chain_status import Chain, ChainSummary
    from tenure.flow.chains import Chains
    from tenure.flow.context import WorkflowContext
    from tenure.flow.groups import Group, GroupProgress
    from tenure.job_collections import Jobs
    from tenure.model.dependencies import Provide, provided
    from tenure.model.errors import (
        ConfigError,
        InvalidInput,
        InvalidJobId,
        InvalidOutput,
        InvalidPayload,
        JobCanceled,
        JobFailed,
        JobNotFound,
        JobsLocked,
        JobsRefused,
        JobUnfinished,
        KeyTaken,
        LeaseLost,
        LeaseNotHeld,
        LeaseTaken,
        NotEnqueued,
        NotPossible,
        ProcessDied,
        RemoteError,
        ResultTimeout,
        ScheduleConflict,
        ScheduleNotFound,
        SchemaMismatch,
        StepFailed,
        StoreUnavailable,
        TenureError,
        TransactionAborted,
        TransactionError,
        UnknownKind,
        WaitTimeout,
    )
    from tenure.model.events import (
        Event,
        JobCompleted,
        JobDeleted,
        JobDue,
        JobEnqueued,
        JobReaped,
        JobReplayed,
        JobRetried,
        JobSettled,
        JobStarted,
        JobUnblocked,
        LeaderDeposed,
        LeaderElected,
        QueuePaused,
        QueueResumed,
        RunAbandoned,
        RunFailedAfterCompletion,
        RunLost,
        ScheduleTicked,
        StepEnded,
        WaitBegan,
        WaitEnded,
        WorkerDied,
        WorkerLeaseLost,
        WorkerStarted,
        WorkerStopped,
        WorkerStopping,
        WorkflowSuspended,
        WorkflowWoken,
    )
    from tenure.model.health import Probe
    from tenure.model.limits import Limit, Rate
    from tenure.model.outcomes import Cancel, Continue, Fail, RetryAfter, Snooze
    from tenure.model.priorities import Priority
    from tenure.model.retries import Retry
    from tenure.model.states import State
    from tenure.worker.run.abort import Aborted, Signal
    from tenure.worker.run.context import Context
    from tenure.worker.run.middleware import CallNext

__all__ = [
    "Aborted",
    "Call",
    "CallNext",
    "Cancel",
    "Chain",
    "ChainSummary",
    "Chains",
    "Client",
    "ConfigError",
    "Context",
    "Continue",
    "Event",
    "Explanation",
    "Fail",
    "Group",
    "GroupProgress",
    "Handle",
    "InvalidInput",
    "InvalidJobId",
    "InvalidOutput",
    "InvalidPayload",
    "Job",
    "JobCanceled",
    "JobCompleted",
    "JobDeleted",
    "JobDue",
    "JobEnqueued",
    "JobFailed",
    "JobNotFound",
    "JobReaped",
    "JobReplayed",
    "JobRetried",
    "JobSettled",
    "JobStarted",
    "JobStatus",
    "JobUnblocked",
    "JobUnfinished",
    "JobUpdate",
    "Jobs",
    "JobsLocked",
    "JobsRefused",
    "KeyTaken",
    "Latency",
    "LeaderDeposed",
    "LeaderElected",
    "LeaderStatus",
    "Lease",
    "LeaseLost",
    "LeaseNotHeld",
    "LeaseTaken",
    "Limit",
    "LimitStatus",
    "MinuteCount",
    "NotEnqueued",
    "NotPossible",
    "Page",
    "Priority",
    "Probe",
    "ProcessDied",
    "Progress",
    "Provide",
    "QueuePaused",
    "QueueResumed",
    "QueueStatus",
    "Rate",
    "Reason",
    "RemoteError",
    "Report",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "RunAbandoned",
    "RunFailedAfterCompletion",
    "RunLost",
    "ScheduleConflict",
    "ScheduleNotFound",
    "ScheduleStatus",
    "ScheduleTicked",
    "Schedules",
    "SchemaMismatch",
    "Signal",
    "Snooze",
    "State",
    "Stats",
    "StepEnded",
    "StepFailed",
    "StoreUnavailable",
    "SyncLease",
    "Tenure",
    "TenureError",
    "Tick",
    "TransactionAborted",
    "TransactionError",
    "UnknownKind",
    "WaitBegan",
    "WaitEnded",
    "WaitTimeout",
    "WorkerDied",
    "WorkerLeaseLost",
    "WorkerStarted",
    "WorkerStatus",
    "WorkerStopped",
    "WorkerStopping",
    "WorkflowContext",
    "WorkflowSuspended",
    "WorkflowWoken",
    "__version__",
    "provided",
]

_HOMES = {
    "tenure.app": "Tenure",
    "tenure.client.client": "Client",
    "tenure.client.explain": "Explanation",
    "tenure.client.facts": "Reason",
    "tenure.client.handle": "Handle",
    "tenure.client.job": "Call Job",
    "tenure.client.leases": "Lease SyncLease",
    "tenure.client.limits": "LimitStatus",
    "tenure.client.overview": "LeaderStatus QueueStatus Stats WorkerStatus",
    "tenure.client.pages": "Page",
    "tenure.client.rates": "Latency MinuteCount",
    "tenure.client.report.life": "Report",
    "tenure.client.schedule_status": "ScheduleStatus Tick",
    "tenure.client.schedules": "Schedules",
    "tenure.client.status": "JobStatus JobUpdate Progress",
    "tenure.flow.chain_status": "Chain ChainSummary",
    "tenure.flow.chains": "Chains",
    "tenure.flow.groups": "Group GroupProgress",
    "tenure.job_collections": "Jobs",
    "tenure.model.dependencies": "Provide provided",
    "tenure.model.errors": (
        "ConfigError InvalidInput InvalidJobId InvalidOutput InvalidPayload JobCanceled JobFailed JobNotFound JobsLocked "
        "JobsRefused JobUnfinished KeyTaken LeaseLost LeaseNotHeld LeaseTaken NotEnqueued NotPossible ProcessDied RemoteError "
        "ResultTimeout ScheduleConflict ScheduleNotFound SchemaMismatch StepFailed StoreUnavailable TenureError "
        "TransactionAborted TransactionError UnknownKind WaitTimeout"
    ),
    "tenure.model.events": (
        "Event JobCompleted JobDeleted JobDue JobEnqueued JobReaped JobReplayed JobRetried JobSettled JobStarted JobUnblocked "
        "LeaderDeposed LeaderElected "
        "QueuePaused QueueResumed RunAbandoned RunFailedAfterCompletion RunLost ScheduleTicked WorkerDied WorkerLeaseLost "
        "WorkerStarted WorkerStopping WorkerStopped StepEnded WaitBegan WaitEnded WorkflowSuspended WorkflowWoken"
    ),
    "tenure.model.health": "Probe",
    "tenure.model.limits": "Limit Rate",
    "tenure.model.outcomes": "Cancel Continue Fail RetryAfter Snooze",
    "tenure.model.priorities": "Priority",
    "tenure.model.retries": "Retry",
    "tenure.model.states": "State",
    "tenure.worker.run.context": "Context",
    "tenure.flow.context": "WorkflowContext",
    "tenure.worker.run.middleware": "CallNext",
    "tenure.worker.run.abort": "Aborted Signal",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
