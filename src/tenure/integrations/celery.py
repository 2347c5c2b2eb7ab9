"""Runs the tasks of an existing Celery app as jobs, without rewriting them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MethodType
from typing import Any
from uuid import UUID

from celery import Celery, Task
from celery.exceptions import Ignore, Reject, Retry

from tenure.app import Tenure
from tenure.client.handle import Handle
from tenure.client.options import CallOptions
from tenure.model.errors import ConfigError, JobCanceled, JobFailed
from tenure.model.outcomes import Cancel, Fail, Outcome, RetryAfter
from tenure.model.states import State
from tenure.worker.run.context import Context

MANY = 1_000_000
"""Attempts of a task with `max_retries=None`: Celery repeats it without end."""

STATES = {
    State.COMPLETED: "SUCCESS",
    State.FAILED: "FAILURE",
    State.DEAD_LETTER: "FAILURE",
    State.CANCELED: "REVOKED",
    State.RETRY: "RETRY",
    State.RUNNING: "STARTED",
}
"""Celery's word for each state; all others are PENDING."""


def from_celery(celery: Celery, app: Tenure, *, redirect: bool = False) -> list[str]:
    """Makes each task of a Celery app a kind of job with the same name, and returns the names.

    Workers of Tenure run them: `bind=True`, `self.retry()`, `autoretry_for`, `self.request` and `Ignore` work as in Celery. With
    `redirect`, `task.delay()` and `task.apply_async()` enqueue with Tenure instead of sending messages: no broker is needed any
    more. Call it in the module of your app, after the modules with the tasks have been imported.
    """
    celery.finalize()
    tasks = {name: task for name, task in celery.tasks.items() if not name.startswith("celery.")}
    for task in tasks.values():
        _define(app, celery, task)
    if redirect:
        celery.send_task = MethodType(_sender(app), celery)
    return sorted(tasks)


def _define(app: Tenure, celery: Celery, task: Task) -> None:
    """Celery counts retries, and decides by itself which errors deserve one: other errors end the job."""

    def run(ctx: Context, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None) -> Any:
        return _called(task, ctx, args or [], kwargs or {})

    run.__name__, run.__qualname__, run.__module__ = task.name, task.name, task.__module__
    retries = task.max_retries
    route = celery.amqp.router.route({}, task.name)
    queue = getattr(task, "queue", None) or getattr(route.get("queue"), "name", None) or celery.conf.task_default_queue
    limit = task.time_limit or celery.conf.task_time_limit or task.soft_time_limit or celery.conf.task_soft_time_limit
    app.job(
        name=task.name,
        queue="default" if queue == "celery" else queue,
        max_attempts=MANY if retries is None else retries + 1,
        timeout=limit,
        expires=task.expires if isinstance(task.expires, int | float) else None,
    )(run)


def _called(task: Task, ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
    task.push_request(
        id=str(ctx.job_id),
        args=args,
        kwargs=kwargs,
        retries=ctx.attempt - 1,
        delivery_info={"routing_key": ctx.queue, "redelivered": ctx.fence > ctx.attempt},
        hostname=str(ctx.worker_id),
        called_directly=False,
        # Celery would send a message to retry a task; of one that runs eagerly, it only raises Retry.
        is_eager=True,
    )
    try:
        return task.run(*args, **kwargs)
    except Retry as wanted:
        raise _retry_after(wanted) from wanted.exc if isinstance(wanted.exc, BaseException) else None
    except Reject as rejected:
        raise Fail(str(rejected.reason or "rejected")) from rejected
    except Ignore as ignored:
        raise Cancel(str(ignored) or "ignored") from ignored
    except Outcome:
        raise
    except Exception as error:
        task.on_failure(error, str(ctx.job_id), args, kwargs, None)
        # Only self.retry() and autoretry_for repeat a task.
        raise Fail(f"{type(error).__name__}: {error}") from error
    finally:
        task.pop_request()


def _retry_after(wanted: Retry) -> RetryAfter:
    when = wanted.when
    if isinstance(when, datetime):
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        when = max(0.0, (aware - datetime.now(UTC)).total_seconds())
    return RetryAfter(float(when or 0), "" if wanted.exc is not None else "retried by the task")


def _sender(app: Tenure) -> Callable[..., TenureResult]:
    def send_task(
        _: Celery,
        name: str,
        args: Any = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        countdown: float | None = None,
        eta: datetime | None = None,
        queue: Any = None,
        expires: Any = None,
        link: Any = None,
        link_error: Any = None,
        chain: Any = None,
        chord: Any = None,
        group_id: str | None = None,
        **_options: Any,
    ) -> TenureResult:
        """Instead of Celery's own, which sends a message."""
        if link or link_error or chain or chord or group_id:
            raise ConfigError(f"{name}: link, chain, group and chord are messages of Celery's: use chains and groups of Tenure's")
        options: CallOptions = {"queue": getattr(queue, "name", queue)}
        if eta is not None:
            options["run_at"] = eta if eta.tzinfo else eta.replace(tzinfo=UTC)
        elif countdown:
            options["delay"] = timedelta(seconds=countdown)
        if isinstance(expires, int | float | datetime):
            options["expires"] = expires if not isinstance(expires, datetime) or expires.tzinfo else expires.replace(tzinfo=UTC)
        return TenureResult(app.enqueue_sync(name, {"args": list(args or []), "kwargs": dict(kwargs or {})}, **options))

    return send_task


class TenureResult:
    """What `task.delay()` returns when it is redirected: the most used part of Celery's `AsyncResult`."""

    def __init__(self, handle: Handle[Any]) -> None:
        self.handle = handle

    @property
    def id(self) -> str:
        return str(self.handle.id)

    @property
    def task_id(self) -> str:
        return self.id

    @property
    def job_id(self) -> UUID:
        return self.handle.id

    @property
    def state(self) -> str:
        return STATES.get(self.handle.status_sync().state, "PENDING")

    status = state

    def ready(self) -> bool:
        return self.state in ("SUCCESS", "FAILURE", "REVOKED")

    def successful(self) -> bool:
        return self.state == "SUCCESS"

    def failed(self) -> bool:
        return self.state == "FAILURE"

    def get(self, timeout: float | None = None, propagate: bool = True, **_: Any) -> Any:
        """Waits for the result. Unlike Celery's, it raises `JobFailed`, not the task's own exception."""
        try:
            return self.handle.result_sync(timeout=None if timeout is None or math.isinf(timeout) else timeout)
        except (JobFailed, JobCanceled) as error:
            if propagate:
                raise
            return error

    def revoke(self, *_: Any, **__: Any) -> None:
        self.handle.cancel_sync("revoked")

    def forget(self) -> None:
        """Nothing: retention removes finished jobs."""

    def __repr__(self) -> str:
        return f"<TenureResult: {self.id}>"
