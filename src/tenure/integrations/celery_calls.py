"""`task.delay()` and `task.apply_async()` of a Celery app that enqueue with Tenure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from celery import Celery

from tenure.app import Tenure
from tenure.client.handle import Handle
from tenure.client.options import CallOptions
from tenure.model.errors import ConfigError, JobCanceled, JobFailed
from tenure.model.priorities import Priority
from tenure.model.states import State

STATES = {
    State.COMPLETED: "SUCCESS",
    State.FAILED: "FAILURE",
    State.DEAD_LETTER: "FAILURE",
    State.CANCELED: "REVOKED",
    State.RETRY: "RETRY",
    State.RUNNING: "STARTED",
}
"""Celery's word for each state; all others are PENDING."""

WITHOUT_EFFECT = frozenset({
    "add_to_parent", "compression", "connection", "delivery_mode", "ignore_result", "immediate", "mandatory", "parent_id",
    "producer", "publisher", "replaced_task_nesting", "reply_to", "result_cls", "retries", "retry", "retry_policy", "root_id",
    "route_name", "router", "serializer", "shadow", "task_type",
})  # fmt: skip
"""Options of a call about messages and results of Celery's, which do not change what the task does."""

REFUSED = {
    "task_id": "the id is made by Tenure; to enqueue a task once, use app.enqueue_sync(name, {...}, key=...)",
    "exchange": "give the name of a queue",
    "routing_key": "give the name of a queue",
}
"""Options of a call that Tenure cannot follow, each with what to do instead."""

HIGHEST = 10
"""The greatest priority of a task; RabbitMQ recommends no more for `x-max-priority`."""


def priority_of(celery: Celery, given: Any) -> int | None:
    """A task without a priority comes last in RabbitMQ, where 10 is the highest, and first in Redis, where 0 is. Here it has
    the normal priority in both cases."""
    if given is None:
        return None
    steps = min(max(int(given), 0), HIGHEST) * (Priority.NORMAL // HIGHEST)
    return Priority.NORMAL - steps if _is_redis(celery) else Priority.NORMAL + steps


def _is_redis(celery: Celery) -> bool:
    url = celery.conf.broker_write_url or celery.conf.broker_url or ""
    first = url if isinstance(url, str) else next(iter(url), "")
    return first.startswith(("redis", "sentinel"))


def sender(app: Tenure) -> Callable[..., TenureResult]:
    """Takes the place of `Celery.send_task`, which sends a message."""

    def send_task(
        celery: Celery, name: str, args: Any = None, kwargs: Mapping[str, Any] | None = None, **given: Any
    ) -> TenureResult:
        if name.startswith("celery.") and name not in app.kinds:
            raise ConfigError(
                f"{name}: map, starmap and chunks run in tasks of Celery's own: use app.map(), or a task for each item"
            )
        given = {option: value for option, value in given.items() if value is not None and option not in WITHOUT_EFFECT}
        options = _options(celery, name, given)
        return TenureResult(app.enqueue_sync(name, {"args": list(args or []), "kwargs": dict(kwargs or {})}, **options))

    return send_task


def _options(celery: Celery, name: str, given: dict[str, Any]) -> CallOptions:
    """Takes what Tenure has an option for out of `given`, and refuses the rest."""
    canvas = [given.pop(option, None) for option in ("link", "link_error", "chain", "chord", "group_id", "group_index")]
    if any(canvas):
        raise ConfigError(f"{name}: link, chain, group and chord are messages of Celery's: use chains and groups of Tenure's")
    queue, headers = given.pop("queue", None), given.pop("headers", None)
    hard, soft = given.pop("time_limit", None), given.pop("soft_time_limit", None)
    options: CallOptions = {
        "queue": getattr(queue, "name", queue),
        "priority": priority_of(celery, given.pop("priority", None)),
        "timeout": hard or soft,
        "meta": {"headers": dict(headers)} if headers else None,
        "expires": _expires(given.pop("expires", None)),
    }
    eta, countdown = given.pop("eta", None), given.pop("countdown", None)
    if eta is not None:
        options["run_at"] = _aware(eta)
    elif countdown:
        options["delay"] = timedelta(seconds=countdown)
    for option in given:
        raise ConfigError(f"{name}: {option} of a call is not supported: {REFUSED.get(option, 'leave it out')}")
    return options


def _expires(given: Any) -> Any:
    return _aware(given) if isinstance(given, datetime) else given


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


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

    @property
    def result(self) -> Any:
        """Of a task that succeeded; of one that failed, the error that `get()` raises; None before."""
        return self.get(propagate=False) if self.ready() else None

    info = result

    @property
    def traceback(self) -> str | None:
        return self.handle.status_sync().error

    @property
    def date_done(self) -> datetime | None:
        return self.handle.status_sync().finished_at

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
