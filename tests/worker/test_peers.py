"""Of many workers that serve the same queues, a few claim when a job is announced."""

from __future__ import annotations

import random

import pytest

from tenure import Tenure
from tenure.model.wakeup import Wakeup
from tenure.worker import engine
from tests.waiting import until


async def test_workers_learn_how_many_serve_the_same(dsn, database):
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
    await until(lambda: [worker._engine.peers for worker in workers], is_=[3, 3, 3, 1])
    await workers[0].stop()
    for worker in workers[1:]:
        worker._renewals = 0
        worker._renewal.wake()
    await until(lambda: [worker._engine.peers for worker in workers[1:]], is_=[2, 2, 1])
    for worker in workers[1:]:
        await worker.stop()


@pytest.mark.parametrize(("peers", "drawn", "claims"), [(8, 0.99, True), (80, 0.09, True), (80, 0.11, False), (1000, 0.5, False)])
async def test_the_more_peers_the_fewer_claim(app, monkeypatch, peers, drawn, claims):
    @app.job
    async def work() -> None: ...

    async with app.running() as worker:
        running = worker._engine
        running.peers = peers
        monkeypatch.setattr(random, "random", lambda: drawn)
        running._claim_task._woken.clear()
        running.on_wakeup(Wakeup.new_jobs("default"))
        assert running._claim_task._woken.is_set() is claims
        running._claim_task._woken.clear()
        running.on_wakeup(Wakeup.missed())  # all claim
        assert running._claim_task._woken.is_set()


async def test_a_worker_that_finds_more_than_it_can_take_wakes_the_others(app, database, monkeypatch):
    sent: list[Wakeup] = []

    @app.job
    async def work() -> None: ...

    await app.enqueue_many([work.call() for _ in range(20)])
    worker = app.worker(concurrency=2)
    monkeypatch.setattr(engine, "WAKE_OTHERS_EVERY", 0.0)
    monkeypatch.setattr("tenure.store.wakeups.Wakeups.notify", lambda _, wakeup: sent.append(wakeup))
    await worker.start()
    await until(lambda: database.sql("select count(*) from tenure.history"), is_=[(20,)])
    await until(lambda: database.sql("select heartbeat_at > started_at from tenure.workers"), is_=[(True,)])
    assert Wakeup.new_jobs("default") not in sent  # there is no other worker to wake
    worker._engine.peers = 50
    await app.enqueue_many([work.call() for _ in range(20)])
    await until(lambda: Wakeup.new_jobs("default") in sent)
    await worker.stop()
    await app.close()
