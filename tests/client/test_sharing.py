"""A client and a worker of the same app in one event loop: one LISTEN, one NOTIFY, and nothing that is not used."""

from __future__ import annotations

import asyncio

import pytest

from tenure.model.wakeup import Wakeup
from tests.store.sessions import OF_TENURE
from tests.waiting import until
from tests.worker.serving import serving

OURS = f"select application_name {OF_TENURE}"


def connected(database):
    return sorted(name.removeprefix("tenure ") for (name,) in database.sql(OURS))


@pytest.fixture
def work(app):
    @app.job
    async def work(n: int) -> int:
        return n

    return work


async def test_a_client_that_only_enqueues_has_two_connections(app, work, database):
    await work.enqueue(1)
    await until(lambda: connected(database), is_=["enqueue", "wakeups"])
    await app.close()
    await until(lambda: connected(database), is_=[])


async def test_a_worker_in_the_own_process_has_four_connections(app, work, database):
    async with serving(app):
        await until(lambda: connected(database), is_=["claim", "duties", "settle", "wakeups"])
    await until(lambda: connected(database), is_=[])


@pytest.mark.parametrize("first", ["client", "worker"])
async def test_a_client_beside_a_worker_adds_what_it_asks_by_and_nothing_else(app, work, database, first):
    if first == "client":
        await work.enqueue(0)
    async with serving(app), serving(app):
        assert await (await work.enqueue(1)).result(timeout=30) == 1
        await until(
            lambda: connected(database), is_=["claim", "claim", "client", "duties", "enqueue", "settle", "settle", "wakeups"]
        )
    await app.close()
    await until(lambda: connected(database), is_=[])


async def test_a_client_that_closes_does_not_deafen_the_worker_beside_it(app, work, database, monkeypatch):
    async with serving(app) as worker:
        assert await (await work.enqueue(1)).result(timeout=30) == 1
        await app.close()
        received: list[Wakeup] = []
        monkeypatch.setattr(worker._engine, "on_wakeup", received.append)
        database.sql("select pg_notify('tenure', 'jobs default')")
        await until(lambda: Wakeup.new_jobs("default") in received)
    await until(lambda: connected(database), is_=[])


async def test_a_worker_that_stops_does_not_deafen_the_client_beside_it(app, work, database):
    async with serving(app):
        await (await work.enqueue(1)).result(timeout=30)
    handle = await work.enqueue(2)
    waits = asyncio.create_task(handle.result())
    await until(lambda: database.sql("select count(*) from tenure.watches where job_id = %s", handle.id), is_=[(1,)])
    async with serving(app):
        assert await waits == 2
    await app.close()
    await until(lambda: connected(database), is_=[])
