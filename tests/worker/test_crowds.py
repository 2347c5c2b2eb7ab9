"""In a crowd that serves the same, a few look when a job is announced."""

from __future__ import annotations

import random

import pytest

from tenure import Tenure
from tenure.worker import engine
from tests.waiting import until


async def test_workers_learn_how_many_serve_the_same(dsn, desk):
    alike, other = Tenure(dsn), Tenure(dsn)

    @alike.job(name="work")
    async def work() -> None: ...

    @other.job(name="something_else")
    async def something_else() -> None: ...

    workers = [alike.worker(), alike.worker(), alike.worker(), other.worker()]
    for worker in workers:
        await worker.start()
    for worker in workers:
        worker._renewals = 0  # the next one counts
        worker._renewal.wake()
    await until(lambda: [worker._engine.crowd for worker in workers], is_=[3, 3, 3, 1])
    await workers[0].stop()
    for worker in workers[1:]:
        worker._renewals = 0
        worker._renewal.wake()
    await until(lambda: [worker._engine.crowd for worker in workers[1:]], is_=[2, 2, 1])
    for worker in workers[1:]:
        await worker.stop()


@pytest.mark.parametrize(("crowd", "drawn", "looks"), [(8, 0.99, True), (80, 0.09, True), (80, 0.11, False), (1000, 0.5, False)])
async def test_the_larger_the_crowd_the_fewer_look(app, monkeypatch, crowd, drawn, looks):
    @app.job
    async def work() -> None: ...

    async with app.running() as worker:
        heart = worker._engine
        heart.crowd = crowd
        monkeypatch.setattr(random, "random", lambda: drawn)
        heart._claims._woken.clear()
        heart.hear("jobs default")
        assert heart._claims._woken.is_set() is looks
        heart._claims._woken.clear()
        heart.hear("")  # something may have been missed: everybody looks
        assert heart._claims._woken.is_set()


async def test_who_finds_more_than_it_can_take_calls_the_others(app, desk, monkeypatch):
    said: list[str] = []

    @app.job
    async def work() -> None: ...

    await app.enqueue_many([work.call() for _ in range(20)])
    worker = app.worker(concurrency=2)
    monkeypatch.setattr(engine, "CALL_EVERY", 0.0)
    monkeypatch.setattr("tenure.store.wakeups.Wakeups.tell", lambda _, word: said.append(word))
    await worker.start()
    await until(lambda: desk.sql("select count(*) from tenure.history"), is_=[(20,)])
    await until(lambda: desk.sql("select heartbeat_at > started_at from tenure.workers"), is_=[(True,)])
    assert "jobs default" not in said  # alone there is nobody to call
    worker._engine.crowd = 50
    await app.enqueue_many([work.call() for _ in range(20)])
    await until(lambda: "jobs default" in said)
    await worker.stop()
    await app.close()
