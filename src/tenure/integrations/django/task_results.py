"""From a job to the result of a Django task."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.tasks.base import Task, TaskError, TaskResult, TaskResultStatus
from django.tasks.exceptions import TaskResultDoesNotExist
from django.utils.module_loading import import_string

from tenure.client.report.life import Attempt, Report
from tenure.client.status import JobStatus
from tenure.model.failures import Failure
from tenure.model.ids import uuid7_time
from tenure.model.states import State

META = "django_task"
"""The key in a job's `meta` of what `django.tasks` knows and Tenure does not."""

STATUS = {
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.DEAD_LETTER: TaskResultStatus.FAILED,
    State.CANCELED: TaskResultStatus.FAILED,
}
"""All other states are READY."""


def meta_of(task: Task, backend: str) -> dict[str, Any]:
    """Tenure has half as many priorities, and forgets `run_after` once the job is due."""
    run_after = None if task.run_after is None else task.run_after.isoformat()
    return {META: {"backend": backend, "priority": task.priority, "run_after": run_after}}


def result_of(report: Report, backend: str) -> TaskResult:
    job = report.job
    runs = [attempt for attempt in report.attempts if attempt.started_at is not None]
    status = STATUS.get(job.state, TaskResultStatus.READY)
    over = status in (TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL)
    given = job.input if isinstance(job.input, dict) else {}
    result = TaskResult(
        task=_task(job, backend),
        id=str(job.id),
        status=status,
        enqueued_at=uuid7_time(job.id) if job.id.version == 7 else job.enqueued_at,
        started_at=runs[0].started_at if runs else None,
        last_attempted_at=runs[-1].started_at if runs else None,
        finished_at=(job.finished_at or job.failed_at) if over else None,
        args=given.get("args", []),
        kwargs=given.get("kwargs", {}),
        backend=backend,
        errors=[error_of(run.error) for run in runs if run.error and not _given_by_a_user(run)],
        worker_ids=[str(run.worker_id) for run in runs],
    )
    object.__setattr__(result, "_return_value", job.output)
    return result


def _given_by_a_user(run: Attempt) -> bool:
    """The reason of a cancellation is not an exception."""
    return run.outcome == "canceled"


def error_of(text: str) -> TaskError:
    failure = Failure.read(text)
    path = failure.path or "Exception"
    return TaskError(
        exception_class_path=path if "." in path else f"builtins.{path}",
        traceback=(failure.traceback or text).rstrip("\n") + "\n",
    )


def _task(job: JobStatus, backend: str) -> Task:
    """Raises `TaskResultDoesNotExist` for a job that is not a task."""
    try:
        task = import_string(job.kind)
    except ImportError as error:
        raise TaskResultDoesNotExist(str(job.id)) from error
    if not isinstance(task, Task):
        raise TaskResultDoesNotExist(str(job.id))
    known = (job.meta or {}).get(META, {})
    run_after = known.get("run_after")
    return task.using(
        priority=known.get("priority", task.priority),
        queue_name=job.queue,
        run_after=datetime.fromisoformat(run_after) if run_after else None,
        backend=backend,
    )
