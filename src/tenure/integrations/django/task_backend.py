"""A backend of Django's own task framework (Django 6): `@task` functions become jobs.

TASKS = {"default": {"BACKEND": "tenure.integrations.django.task_backend.TenureBackend"}}
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.core.checks import CheckMessage, Error
from django.db import connections
from django.tasks.backends.base import BaseTaskBackend
from django.tasks.base import Task, TaskResult, TaskResultStatus
from django.tasks.exceptions import TaskResultDoesNotExist
from django.tasks.signals import task_enqueued
from django.utils import timezone
from django.utils.json import normalize_json

from tenure.client.job import Job
from tenure.client.report.gather import gather
from tenure.client.report.life import Report
from tenure.integrations.django.app import app
from tenure.integrations.django.task_handlers import handler_of
from tenure.integrations.django.task_results import meta_of, result_of
from tenure.model.errors import ConfigError, JobNotFound
from tenure.model.retries import Retry
from tenure.store.borrowed import borrow
from tenure.store.query import Query

T = TypeVar("T")

OPTIONS = ("max_attempts", "retry", "timeout", "retention", "capability", "lease")
"""Of `@app.job`, for all tasks of a backend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenureTask(Task):
    """With options for one task: `@task(max_attempts=5, timeout="10m")` (Django 6.1)."""

    max_attempts: int | None = None
    timeout: str | float | None = None


class TenureBackend(BaseTaskBackend):
    task_class = TenureTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        app.kinds.more_queues |= self.queues

    def validate_task(self, task: Task) -> None:
        """Called where a task is defined, so that workers know it as soon as its module is imported."""
        super().validate_task(task)
        self._job(task)

    def enqueue(self, task: Task, args: Iterable[Any], kwargs: dict[str, Any]) -> TaskResult:
        self.validate_task(task)
        given = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        handle = self._job(task).using(**self._call_options(task)).enqueue_sync(**given)
        result = TaskResult(
            task=task,
            id=str(handle.id),
            status=TaskResultStatus.READY,
            enqueued_at=handle.enqueued_at,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            backend=self.alias,
            errors=[],
            worker_ids=[],
            **given,
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        try:
            report = self._report(UUID(str(result_id)))
        except (ValueError, JobNotFound) as error:
            raise TaskResultDoesNotExist(str(result_id)) from error
        if report is None:
            raise TaskResultDoesNotExist(str(result_id))
        return result_of(report, self.alias)

    def check(self, **_: Any) -> list[CheckMessage]:
        unknown = [name for name in self.options if name not in OPTIONS]
        return [
            Error(f"TASKS[{self.alias!r}]: unknown option {name!r}", hint=f"Use {', '.join(OPTIONS)}.", id="tenure.E003")
            for name in unknown
        ]

    def _job(self, task: Task) -> Job[..., Any, Any, Any]:
        if task.module_path in app.kinds:
            return app.jobs[task.module_path]
        options = {name: value for name, value in self.options.items() if name not in ("retry", "max_attempts")}
        if (timeout := getattr(task, "timeout", None)) is not None:
            options["timeout"] = timeout
        try:
            define = app.job(name=task.module_path, queue=task.queue_name, retry=self._retry(task), **options)
            job: Job[..., Any, Any, Any] = define(handler_of(task))
        except ConfigError as error:
            raise ConfigError(f"TASKS[{self.alias!r}] or @task: {error}") from error
        return job

    def _retry(self, task: Task) -> Retry | int:
        """One attempt by default, as with Django's own backends."""
        attempts: int | None = getattr(task, "max_attempts", None) or self.options.get("max_attempts")
        if "retry" not in self.options:
            return attempts or 1
        policy = Retry.from_value(self.options["retry"])
        return policy if attempts is None else policy.with_attempts(attempts)

    def _call_options(self, task: Task) -> dict[str, Any]:
        run_at = task.run_after
        if run_at is not None and timezone.is_naive(run_at):
            run_at = timezone.make_aware(run_at)
        return {
            "queue": task.queue_name,
            "priority": (task.priority + 100) // 2,
            "run_at": run_at,
            "meta": meta_of(task, self.alias),
        }

    def _report(self, job_id: UUID) -> Report | None:
        """On Django's connection, which sees what its own transaction has enqueued. Coroutines may not use that one."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _without_waiting(gather(_fetch, job_id))
        return app.client().report_sync(job_id)


async def _fetch(query: Query[T]) -> list[T]:
    return borrow(connections[app.project.database]).fetch_sync(query, app.settings.schema)


def _without_waiting(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that awaits nothing but `_fetch`, which never suspends it."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits for something")
