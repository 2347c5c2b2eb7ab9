"""One contract for all that starts and stops: stop leaves nothing running, and may come first, or twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure import Tenure
from tenure.leader.leader import Leader
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups
from tests.store.sessions import OF_TENURE
from tests.waiting import until


def leader(database_target: DatabaseTarget, app: Tenure) -> Leader:
    return Leader(database_target)


def wakeups(database_target: DatabaseTarget, app: Tenure) -> Wakeups:
    return Wakeups(database_target, lambda _: None)


def worker(database_target: DatabaseTarget, app: Tenure) -> Any:
    return app.worker()


SERVICES: list[Callable[[DatabaseTarget, Tenure], Any]] = [leader, wakeups, worker]


async def call(method: Callable[[], Any]) -> None:
    result = method()
    if asyncio.iscoroutine(result):
        await result


@pytest.fixture(params=SERVICES, ids=lambda make: make.__name__)
def service(request, database_target, app):
    return request.param(database_target, app)


async def test_stop_may_come_before_start(service):
    await service.stop()
    await service.stop()


async def test_stop_may_come_twice_and_leaves_nothing_behind(service, database):
    before = asyncio.all_tasks()
    await call(service.start)
    await service.stop()
    await service.stop()
    assert asyncio.all_tasks() == before
    await until(lambda: database.sql(f"select application_name {OF_TENURE}"), is_=[])


async def test_what_was_stopped_can_start_again(service, database):
    for _ in range(2):
        await call(service.start)
        await until(lambda: database.sql(f"select count(*) > 0 {OF_TENURE}"), is_=[(True,)])
        await service.stop()


async def test_a_worker_may_be_started_twice(app, database):
    worker = app.worker()
    await worker.start()
    await worker.start()
    assert database.sql("select count(*) from tenure.workers") == [(1,)]
    await worker.stop()
    assert worker.worker_id is None


async def test_run_ends_when_the_worker_is_stopped(app, database):
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.worker_id)
    await worker.stop()
    await running
    assert database.sql("select count(*) from tenure.workers") == [(0,)]


async def test_a_cancelled_run_leaves_in_order(app, database):
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.worker_id)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert database.sql("select count(*) from tenure.workers") == [(0,)]
