"""What a worker calls for a Django task: the task's function, with its context and signals."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import Any

from django.tasks import task_backends
from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
from django.tasks.signals import task_finished, task_started
from django.utils import timezone
from django.utils.json import normalize_json
from django.utils.module_loading import import_string

from tenure.integrations.django.task_results import META
from tenure.model.outcomes import Outcome
from tenure.worker.run.abort import Aborted
from tenure.worker.run.context import Context


def handler_of(task: Task) -> Callable[..., Any]:
    """A function with the input of any task: a list and a dictionary, because tasks may take `*args` and `**kwargs`."""

    def run(ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
        found = import_string(ctx.kind)
        result = _first_result(found, ctx, args, kwargs)
        if ctx.attempt > 1:
            result = task_backends[result.backend].get_result(result.id)
        with _signalled(ctx, result) as finished:
            return finished(found.func(*_context(found, result), *args, **kwargs))

    async def arun(ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
        found = import_string(ctx.kind)
        result = _first_result(found, ctx, args, kwargs)
        if ctx.attempt > 1:
            result = await task_backends[result.backend].aget_result(result.id)
        with _signalled(ctx, result) as finished:
            return finished(await found.func(*_context(found, result), *args, **kwargs))

    return arun if iscoroutinefunction(task.func) else run


def _context(task: Task, result: TaskResult) -> list[TaskContext]:
    return [TaskContext(task_result=result)] if task.takes_context else []


def _first_result(task: Task, ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> TaskResult:
    """As it is when the first attempt begins."""
    now = timezone.now()
    return TaskResult(
        task=task,
        id=str(ctx.job_id),
        status=TaskResultStatus.RUNNING,
        enqueued_at=ctx.enqueued_at,
        started_at=now,
        last_attempted_at=now,
        finished_at=None,
        args=args,
        kwargs=kwargs,
        backend=ctx.meta.get(META, {}).get("backend", task.backend),
        errors=[],
        worker_ids=[str(ctx.worker_id)],
    )


@contextmanager
def _signalled(ctx: Context, result: TaskResult) -> Iterator[Callable[[Any], Any]]:
    """Sends `task_started`, and `task_finished` when the task is over: after its last attempt, or its success."""
    sender = type(task_backends[result.backend])
    task_started.send(sender, task_result=result)

    def finished(value: Any) -> Any:
        normal = normalize_json(value)
        object.__setattr__(result, "_return_value", normal)
        return normal

    try:
        yield finished
    except (Outcome, Aborted):
        raise  # the job is snoozed, canceled or requeued: the task has not finished
    except BaseException as error:
        if ctx.is_last_attempt:
            path = f"{type(error).__module__}.{type(error).__qualname__}"
            result.errors.append(TaskError(exception_class_path=path, traceback="".join(traceback.format_exception(error))))
            _end(sender, result, TaskResultStatus.FAILED)
        raise
    _end(sender, result, TaskResultStatus.SUCCESSFUL)


def _end(sender: type, result: TaskResult, status: TaskResultStatus) -> None:
    object.__setattr__(result, "finished_at", timezone.now())
    object.__setattr__(result, "status", status)
    task_finished.send(sender, task_result=result)
