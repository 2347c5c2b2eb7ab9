"""The tasks of a real Celery app, run by Tenure."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery, Task, chain
from celery.exceptions import Ignore, Reject

from tenure import ConfigError, JobFailed, Rate, Tenure
from tenure.integrations.celery import _rate, from_celery
from tenure.integrations.celery_calls import priority_of
from tenure.testing import assert_enqueued, drain_sync, enqueued_sync, travel

celery = Celery("shop", broker="memory://", set_as_current=False)
celery.conf.task_routes = {"shop.report": {"queue": "reports"}, "shop.hooked": {"priority": 4}}
SEEN: list[object] = []
RELEASED = threading.Event()


@celery.task(name="shop.add")
def add(x: int, y: int = 1) -> int:
    return x + y


@celery.task(name="shop.flaky", bind=True, max_retries=2, default_retry_delay=60)
def flaky(self, fails: int) -> int:
    SEEN.append((self.request.id, self.request.retries, self.request.args))
    if self.request.retries < fails:
        raise self.retry(exc=ConnectionError("no answer"))
    return self.request.retries


@celery.task(name="shop.auto", autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 5, "countdown": 5})
def auto(error: str) -> None:
    raise {"connection": ConnectionError, "value": ValueError}[error](error)


@celery.task(name="shop.report", time_limit=120)
def report() -> str:
    return "written"


@celery.task(name="shop.unwanted", bind=True)
def unwanted(self, how: str) -> None:
    raise Ignore("not needed") if how == "ignore" else Reject("bad", requeue=how == "requeue")


@celery.task(name="shop.stubborn", bind=True)
def stubborn(self) -> None:
    raise self.retry(max_retries=9, countdown=1)


@celery.task(name="shop.changing", bind=True)
def changing(self, n: int) -> None:
    raise self.retry(args=(n + 1,), countdown=1)


@celery.task(name="shop.slow")
def slow() -> None:
    RELEASED.wait(60)


@celery.task(name="shop.seldom", rate_limit="2/h")
def seldom() -> None: ...


class WithContext(Task):
    """As Flask's documentation has it."""

    def __call__(self, *args, **kwargs):
        SEEN.append(("in the context", self.request.retries))
        return super().__call__(*args, **kwargs)


@celery.task(name="shop.in_context", bind=True, base=WithContext, max_retries=2, default_retry_delay=1)
def in_context(self, fails: int) -> list[object]:
    if self.request.retries < fails:
        raise self.retry()
    return [self.request.id, self.request.retries]


class Hooked(Task):
    def before_start(self, task_id, args, kwargs):
        SEEN.append(("before_start", self.request.headers))

    def on_success(self, retval, task_id, args, kwargs):
        SEEN.append(("on_success", retval))
        raise ValueError("a hook after the task changes nothing")

    def on_retry(self, exc, task_id, args, kwargs, einfo):
        SEEN.append(("on_retry", str(exc), "answer" in einfo.traceback))

    def on_failure(self, exc, task_id, args, kwargs, einfo):
        SEEN.append(("on_failure", str(exc), einfo.type))

    def after_return(self, status, *_):
        SEEN.append(("after_return", status))


@celery.task(name="shop.hooked", bind=True, base=Hooked, max_retries=1)
def hooked(self, how: str) -> str:
    if how == "retry" and self.request.retries == 0:
        raise self.retry(exc=ConnectionError("no answer"), countdown=1)
    if how == "fail":
        raise KeyError(how)
    return how


@pytest.fixture
def app(server_dsn):
    from tenure.testing import bound, temporary_database

    SEEN.clear()
    app = Tenure(log_failed_attempt="debug", log_dead_letter="debug")
    names = from_celery(celery, app, redirect=True)
    assert names == sorted(task for task in celery.tasks if task.startswith("shop."))
    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        yield app
    del celery.send_task


def test_delay_enqueues_and_a_worker_runs_the_task(app):
    result = add.delay(2, y=3)
    assert (result.state, result.ready()) == ("PENDING", False)
    [run] = drain_sync(app)
    assert (run.kind, run.output) == ("shop.add", 5)
    assert (result.get(timeout=30), result.state, result.successful()) == (5, "SUCCESS", True)


def test_options_of_a_call(app):
    add.apply_async((1,), countdown=3600)
    add.apply_async((2,), eta=datetime.now(UTC) + timedelta(hours=2))
    add.apply_async((3,), queue="fast")
    by_first = {job.args["args"][0]: job for job in enqueued_sync(app.jobs["shop.add"])}
    assert [by_first[n].state for n in (1, 2, 3)] == ["scheduled", "scheduled", "pending"]
    assert by_first[3].queue == "fast"
    assert sorted(run.output for run in drain_sync(app, queues=["default", "fast"])) == [4]
    travel(app, hours=3)
    assert sorted(run.output for run in drain_sync(app)) == [2, 3]


def test_expires(app):
    add.apply_async((1,), expires=60)
    travel(app, seconds=61)
    assert drain_sync(app) == []
    assert [job.state for job in enqueued_sync(app)] == ["canceled"]


def test_the_routes_and_limits_of_the_celery_app(app):
    report.delay()
    assert_enqueued(app.jobs["shop.report"], queue="reports", times=1)
    assert app.kinds["shop.report"].timeout == timedelta(minutes=2)
    assert app.kinds["shop.hooked"].priority == 70


def test_the_rate_of_a_task(app):
    for _ in range(3):
        seldom.delay()
    assert [run.state for run in drain_sync(app)] == ["completed", "completed"]
    travel(app, hours=1)
    assert [run.state for run in drain_sync(app)] == ["completed"]


@pytest.mark.parametrize(("given", "rate"), [("10/m", (10, 60)), ("0.5/s", (1, 2)), (3, (3, 1)), (None, None), (0, None)])
def test_rates_of_celery(given, rate):
    found = _rate(given)
    assert found == (None if rate is None else Rate(rate[0], float(rate[1])))


@pytest.mark.parametrize(
    ("broker", "priorities"), [("amqp://", {0: 50, 4: 70, 10: 100, 255: 100}), ("redis://", {0: 50, 4: 30, 9: 5})]
)
def test_priorities_keep_their_order_around_tasks_without_one(broker, priorities):
    other = Celery("other", broker=broker, set_as_current=False)
    assert {given: priority_of(other, given) for given in priorities} == priorities
    assert priority_of(other, None) is None


def test_priority_headers_and_time_limits_of_a_call(app):
    hooked.apply_async(("done",), priority=10, headers={"tenant": "blue"}, time_limit=30, soft_time_limit=20)
    [job] = enqueued_sync(app)
    assert (job.priority, job.meta) == (100, {"headers": {"tenant": "blue"}})
    assert app.client().find_sync(job.id).timeout == 30
    drain_sync(app)
    assert SEEN[0] == ("before_start", {"tenant": "blue"})


def test_a_task_sees_the_headers_that_a_hook_has_added(app):
    """They do not replace those of the call."""
    hooked.apply_async(("done",), headers={"tenant": "blue"})
    [job] = enqueued_sync(app)
    call = app.jobs["shop.hooked"].call(args=["done"], kwargs={}).with_headers(tenant="other", traceparent="00-1")
    app.client().cancel_sync(job.id)
    app.enqueue_many_sync([call])
    drain_sync(app)
    assert SEEN[0] == ("before_start", {"tenant": "other", "traceparent": "00-1"})


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"task_id": "7"}, "shop.add: task_id of a call is not supported: the id is made by Tenure"),
        ({"routing_key": "fast"}, "routing_key of a call is not supported: give the name of a queue"),
        ({"user_id": "guest"}, "user_id of a call is not supported: leave it out"),
    ],
)
def test_what_a_call_cannot_have_is_refused(app, option, told):
    with pytest.raises(ConfigError, match=told):
        add.apply_async((1,), **option)
    assert enqueued_sync(app) == []


STARTED, ENDED = ("before_start", None), ("after_return", "SUCCESS")


@pytest.mark.parametrize(
    ("how", "states", "seen"),
    [
        ("done", ["completed"], [("on_success", "done"), ENDED]),
        (
            "retry",
            ["retry", "completed"],
            [("on_retry", "no answer", True), ("after_return", "RETRY"), STARTED, ("on_success", "retry"), ENDED],
        ),
        ("fail", ["failed"], [("on_failure", "'fail'", KeyError), ("after_return", "FAILURE")]),
    ],
)
def test_hooks_of_a_task(app, how, states, seen):
    hooked.delay(how)
    assert [run.state for run in drain_sync(app)] == states
    assert [STARTED, *seen] == SEEN


def test_a_time_limit_ends_the_task_without_a_retry(app):
    slow.apply_async(time_limit=0.1)
    RELEASED.clear()
    try:
        assert [run.state for run in drain_sync(app)] == ["dead_letter"]
    finally:
        RELEASED.set()


def test_a_retry_may_set_its_own_limit(app):
    stubborn.delay()
    assert [run.state for run in drain_sync(app)] == ["retry"] * 9 + ["failed"]


def test_a_retry_with_other_arguments_is_refused(app):
    changing.delay(1)
    [run] = drain_sync(app)
    assert run.state == "failed"
    assert (
        "self.retry() was called with other arguments, but a job keeps its own: enqueue the task with the new ones" in run.error
    )


def test_retries_that_the_task_asks_for(app):
    result = flaky.delay(2)
    runs = drain_sync(app, retries=False)
    assert [(run.state, run.attempt) for run in runs] == [("retry", 1)]
    assert "ConnectionError: no answer" in runs[0].error
    assert result.state == "RETRY"
    travel(app, seconds=61)
    assert [run.state for run in drain_sync(app)] == ["retry", "completed"]
    assert result.get(timeout=30) == 2
    assert [(result.id, n, [2]) for n in (0, 1, 2)] == SEEN


def test_a_task_class_that_wraps_every_call(app):
    result = in_context.delay(2)
    assert [run.state for run in drain_sync(app)] == ["retry", "retry", "completed"]
    assert result.get(timeout=30) == [result.id, 2]
    assert [("in the context", retries) for retries in (0, 1, 2)] == SEEN


def test_what_a_result_has(app):
    result = add.delay(1, 2)
    assert (result.result, result.info, result.traceback, result.date_done) == (None, None, None, None)
    drain_sync(app)
    assert (result.result, result.info, result.traceback) == (3, 3, None)
    assert result.date_done is not None
    failed = auto.delay("value")
    drain_sync(app)
    assert isinstance(failed.result, JobFailed)
    assert "ValueError: value" in failed.traceback


def test_tasks_of_celery_s_own_are_refused(app):
    """No worker would run them."""
    with pytest.raises(ConfigError, match=r"celery.map: .* use app.map()"):
        add.map([1, 2]).delay()


def test_retries_end(app):
    result = flaky.delay(9)
    assert [run.state for run in drain_sync(app)] == ["retry", "retry", "failed"]
    with pytest.raises(JobFailed, match="no answer"):
        result.get(timeout=30)
    assert isinstance(result.get(timeout=5, propagate=False), JobFailed)
    assert result.failed()


def test_autoretry(app):
    auto.delay("connection")
    assert [run.state for run in drain_sync(app)] == ["retry"] * 5 + ["failed"]
    auto.delay("value")
    assert [run.state for run in drain_sync(app)] == ["failed"]


def test_ignore_and_reject(app):
    unwanted.delay("ignore")
    unwanted.delay("reject")
    assert sorted((run.state, run.error) for run in drain_sync(app)) == [("canceled", "not needed"), ("failed", "bad")]


def test_a_rejected_task_that_is_to_be_requeued_runs_again(app):
    unwanted.delay("requeue")
    assert [(run.state, run.attempt) for run in drain_sync(app)] == [("scheduled", 1)]
    travel(app, seconds=2)
    assert [(run.state, run.attempt) for run in drain_sync(app)] == [("scheduled", 1)]


def test_revoke(app):
    result = add.apply_async((1,), countdown=60)
    result.revoke()
    assert result.state == "REVOKED"


def test_a_task_is_still_a_function(app):
    assert add(1, 1) == 2


def test_canvases_are_refused_clearly(app):
    with pytest.raises(ConfigError, match="use chains and groups of Tenure's"):
        chain(add.s(1), add.s(2)).apply_async()


def test_by_name_without_redirect(server_dsn, dsn):
    app = Tenure(dsn)
    from_celery(celery, app)
    assert "send_task" not in vars(celery)
    app.enqueue_sync("shop.add", {"args": [1, 2]})
    assert [run.output for run in drain_sync(app)] == [3]
    app.close_sync()
