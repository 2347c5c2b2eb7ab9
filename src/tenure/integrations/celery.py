"""Runs the tasks of an existing Celery app as jobs, without rewriting them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from types import MethodType
from typing import Any

from billiard.einfo import ExceptionInfo
from celery import Celery, Task
from celery.app import trace
from celery.exceptions import Ignore, Reject, Retry

from tenure.app import Tenure
from tenure.integrations.celery_calls import priority_of, sender
from tenure.model.limits import Rate
from tenure.model.outcomes import Cancel, Fail, Outcome, RetryAfter, Snooze
from tenure.model.retries import MOST_ATTEMPTS
from tenure.model.retries import Retry as RetryPolicy
from tenure.worker.run.context import Context

log = logging.getLogger("tenure")

AS_CELERY_DECIDES = RetryPolicy(MOST_ATTEMPTS, give_up_on=Exception)
"""Celery itself counts retries, and each call of `self.retry()` may set another limit: Tenure must not end them before. What
fails outside of the task, such as a time limit, is not retried in Celery."""

REQUEUED_AFTER = "1s"
"""Of `Reject(requeue=True)`: a task that is rejected again and again must not occupy a worker."""

SPANS = {"s": 1.0, "m": 60.0, "h": 3600.0}
"""Seconds, by the unit of a rate."""


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
    if any(_has_own_call(task) for task in tasks.values()):
        # As a worker of Celery does: in `super().__call__()` the task keeps its request, with its id and its number of retries.
        trace._install_stack_protection()  # noqa: SLF001 - Celery has no other name for it
    if redirect:
        celery.send_task = MethodType(sender(app), celery)
    return sorted(tasks)


def _define(app: Tenure, celery: Celery, task: Task) -> None:
    def run(ctx: Context, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None) -> Any:
        return _called(task, ctx, args or [], kwargs or {})

    run.__name__, run.__qualname__, run.__module__ = task.name, task.name, task.__module__
    route = celery.amqp.router.route({}, task.name)
    queue = getattr(task, "queue", None) or getattr(route.get("queue"), "name", None) or celery.conf.task_default_queue
    priority = priority_of(celery, route.get("priority") if task.priority is None else task.priority)
    app.job(
        name=task.name,
        queue="default" if queue == "celery" else queue,
        priority="normal" if priority is None else priority,
        retry=AS_CELERY_DECIDES,
        timeout=task.time_limit or task.soft_time_limit,
        expires=task.expires if isinstance(task.expires, int | float) else None,
        rate=_rate(task.rate_limit),
    )(run)


def _rate(given: Any) -> Rate | None:
    """`"10/m"`, `"0.5/s"`, or a number per second. Celery counts per worker, Tenure over all workers."""
    times, _, unit = str(given or "").partition("/")
    most = float(times or 0)
    if not most:
        return None
    span = SPANS[unit or "s"]
    return Rate(int(most), span) if most.is_integer() else Rate(1, span / most)


def _called(task: Task, ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
    task.push_request(
        id=str(ctx.job_id),
        args=args,
        kwargs=kwargs,
        retries=ctx.attempt - 1,
        headers={**ctx.headers, **(ctx.meta.get("headers") or {})} or None,
        delivery_info={"routing_key": ctx.queue, "redelivered": ctx.fence > ctx.attempt},
        hostname=str(ctx.worker_id),
        called_directly=False,
        # Celery would send a message to retry a task; of one that runs eagerly, it only raises Retry.
        is_eager=True,
    )
    try:
        return _traced(task, str(ctx.job_id), args, kwargs)
    finally:
        task.pop_request()


def _traced(task: Task, task_id: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The task with its hooks, as a worker of Celery runs them."""
    call = (task_id, args, kwargs)
    try:
        task.before_start(*call)
        result = (task if _has_own_call(task) else task.run)(*args, **kwargs)
    except Retry as wanted:
        outcome = _after_retry(task, wanted, args, kwargs)
        _hook(task.on_retry, wanted.exc, *call, ExceptionInfo())
        _hook(task.after_return, "RETRY", wanted, *call, None)
        raise outcome from wanted.exc if isinstance(wanted.exc, BaseException) else None
    except Reject as rejected:
        raise Snooze(REQUEUED_AFTER) if rejected.requeue else Fail(str(rejected.reason or "rejected")) from rejected
    except Ignore as ignored:
        raise Cancel(str(ignored) or "ignored") from ignored
    except Outcome:
        raise
    except Exception as error:
        _hook(task.on_failure, error, *call, ExceptionInfo())
        _hook(task.after_return, "FAILURE", error, *call, None)
        # Only self.retry() and autoretry_for repeat a task.
        raise Fail(f"{type(error).__name__}: {error}") from error
    _hook(task.on_success, result, *call)
    _hook(task.after_return, "SUCCESS", result, *call, None)
    return result


def _has_own_call(task: Task) -> bool:
    """Whether its class defines `__call__`, for example to open Flask's application context around every task."""
    return bool(trace.task_has_custom(task, "__call__"))


def _hook(hook: Callable[..., Any], *given: Any) -> None:
    """As in Celery, an error in a hook after the task does not change how the task ended."""
    try:
        hook(*given)
    except Exception:
        name = getattr(hook, "__qualname__", str(hook))
        log.exception("a hook of a Celery task failed", extra={"hook": name})


def _after_retry(task: Task, wanted: Retry, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    next_call = wanted.sig
    if next_call is not None and (list(next_call.args) != args or dict(next_call.kwargs) != kwargs):
        return Fail(
            f"{task.name}: self.retry() was called with other arguments, but a job keeps its own: enqueue the task with the new "
            "ones by apply_async(), and raise Ignore"
        )
    when = wanted.when
    if isinstance(when, datetime):
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        when = max(0.0, (aware - datetime.now(UTC)).total_seconds())
    return RetryAfter(float(when or 0), "" if wanted.exc is not None else "retried by the task")
