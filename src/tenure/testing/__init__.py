"""For tests of your own code: a database, a clock to set, and ways to run jobs and to see what was enqueued.

The names below are imported when they are first used: the pytest plugin must cost nothing in a project that does not use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.testing.background import running_worker
    from tenure.testing.clock import travel
    from tenure.testing.contexts import RecordingContext, context
    from tenure.testing.databases import bound, database_server, temporary_database
    from tenure.testing.draining import DrainTimeout, JobRun, drain, drain_sync
    from tenure.testing.enqueued_jobs import EnqueuedJob, assert_enqueued, enqueued, enqueued_sync
    from tenure.testing.faults import crash_after, lose_lease
    from tenure.testing.inline import run_inline
    from tenure.testing.overrides import override
    from tenure.testing.recorder import Recorder
    from tenure.testing.workflow_contexts import RecordedStep, RecordingWorkflowContext, workflow_context

__all__ = [
    "DrainTimeout",
    "EnqueuedJob",
    "JobRun",
    "RecordedStep",
    "Recorder",
    "RecordingContext",
    "RecordingWorkflowContext",
    "assert_enqueued",
    "bound",
    "context",
    "crash_after",
    "database_server",
    "drain",
    "drain_sync",
    "enqueued",
    "enqueued_sync",
    "lose_lease",
    "override",
    "run_inline",
    "running_worker",
    "temporary_database",
    "travel",
    "workflow_context",
]

_HOMES = {
    "background": "running_worker",
    "clock": "travel",
    "contexts": "RecordingContext context",
    "databases": "bound database_server temporary_database",
    "draining": "DrainTimeout JobRun drain drain_sync",
    "enqueued_jobs": "EnqueuedJob assert_enqueued enqueued enqueued_sync",
    "faults": "crash_after lose_lease",
    "inline": "run_inline",
    "overrides": "override",
    "recorder": "Recorder",
    "workflow_contexts": "RecordedStep RecordingWorkflowContext workflow_context",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
