"""The tasks of a real Celery app, run by Tenure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery, chain
from celery.exceptions import Ignore, Reject

from tenure import ConfigError, JobFailed, Tenure
from tenure.integrations.celery import from_celery
from tenure.testing import assert_enqueued, drain_sync, enqueued_sync, travel

celery = Celery("shop", broker="memory://", set_as_current=False)
celery.conf.task_routes = {"shop.report": {"queue": "reports"}}
SEEN: list[object] = []


@celery.task(name="shop.add")
def add(x: int, y: int = 1) -> int:
    return x + y


@celery.task(name="shop.flaky", bind=True, max_retries=2, default_retry_delay=60)
def flaky(self, fails: int) -> int:
    SEEN.append((self.request.id, self.request.retries, self.request.args))
    if self.request.retries < fails:
        raise self.retry(exc=ConnectionError("no answer"))
    return self.request.retries


@celery.task(name="shop.auto", autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 3, "countdown": 5}, max_retries=3)
def auto(error: str) -> None:
    raise {"connection": ConnectionError, "value": ValueError}[error](error)


@celery.task(name="shop.report", time_limit=120)
def report() -> str:
    return "written"


@celery.task(name="shop.unwanted")
def unwanted(how: str) -> None:
    raise Ignore("not needed") if how == "ignore" else Reject("bad", requeue=False)


@pytest.fixture
def app(server_dsn):
    from tenure.testing import bound, temporary_database

    SEEN.clear()
    app = Tenure(log_failed_attempt="debug", log_dead_letter="debug")
    names = from_celery(celery, app, redirect=True)
    assert names == ["shop.add", "shop.auto", "shop.flaky", "shop.report", "shop.unwanted"]
    with temporary_database(server_dsn) as dsn, bound(app, dsn):
        yield app
    del celery.send_task


def test_delay_enqueues_and_a_worker_runs_the_task(app):
    result = add.delay(2, y=3)
    assert (result.state, result.ready()) == ("PENDING", False)
    [run] = drain_sync(app)
    assert (run.kind, run.output) == ("shop.add", 5)
    assert (result.get(timeout=5), result.state, result.successful()) == (5, "SUCCESS", True)


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
    assert app.kinds["shop.flaky"].retry.max_attempts == 3


def test_retries_that_the_task_asks_for(app):
    result = flaky.delay(2)
    runs = drain_sync(app, retries=False)
    assert [(run.state, run.attempt) for run in runs] == [("retry", 1)]
    assert "ConnectionError: no answer" in runs[0].error
    assert result.state == "RETRY"
    travel(app, seconds=61)
    assert [run.state for run in drain_sync(app)] == ["retry", "completed"]
    assert result.get(timeout=5) == 2
    assert [(result.id, n, [2]) for n in (0, 1, 2)] == SEEN


def test_retries_end(app):
    result = flaky.delay(9)
    assert [run.state for run in drain_sync(app)] == ["retry", "retry", "failed"]
    with pytest.raises(JobFailed, match="no answer"):
        result.get(timeout=5)
    assert isinstance(result.get(timeout=5, propagate=False), JobFailed)
    assert result.failed()


def test_autoretry(app):
    auto.delay("connection")
    assert [run.state for run in drain_sync(app)] == ["retry", "retry", "retry", "failed"]
    auto.delay("value")
    assert [run.state for run in drain_sync(app)] == ["failed"]


def test_ignore_and_reject(app):
    unwanted.delay("ignore")
    unwanted.delay("reject")
    assert sorted((run.state, run.error) for run in drain_sync(app)) == [("canceled", "not needed"), ("failed", "bad")]


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
