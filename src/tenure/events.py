"""All events, by their names: `from tenure.events import JobCanceled`.

Those that share no name with an error can also be imported from `tenure` itself.
"""

from __future__ import annotations

from tenure.model.events import (
    Event,
    JobCanceled,
    JobDeleted,
    JobDue,
    JobEnqueued,
    JobReaped,
    JobReplayed,
    JobRetried,
    JobSettled,
    JobStarted,
    LeaderDeposed,
    LeaderElected,
    QueuePaused,
    QueueResumed,
    RunAbandoned,
    RunFailedAfterCompletion,
    RunLost,
    ScheduleTicked,
    StepEnded,
    WorkerDied,
    WorkerLeaseLost,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
    WorkflowSuspended,
)

__all__ = [
    "Event",
    "JobCanceled",
    "JobDeleted",
    "JobDue",
    "JobEnqueued",
    "JobReaped",
    "JobReplayed",
    "JobRetried",
    "JobSettled",
    "JobStarted",
    "LeaderDeposed",
    "LeaderElected",
    "QueuePaused",
    "QueueResumed",
    "RunAbandoned",
    "RunFailedAfterCompletion",
    "RunLost",
    "ScheduleTicked",
    "StepEnded",
    "WorkerDied",
    "WorkerLeaseLost",
    "WorkerStarted",
    "WorkerStopped",
    "WorkerStopping",
    "WorkflowSuspended",
]
