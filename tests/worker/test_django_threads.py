"""Django's ORM in handlers: its connections belong to threads, so a hook in the handler's own thread keeps them usable."""

from __future__ import annotations

import threading

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connection, connections

from tenure import Tenure
from tests.transactions.django_orm import payment_model, set_up
from tests.worker.serving import serving

ORM_SESSIONS = "select pid from pg_stat_activity where datname = current_database() and application_name = 'orm'"


@pytest.fixture
def payments(dsn, database):
    # Connections are kept from job to job, and looked at before each.
    set_up(f"{dsn} application_name=orm", CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=True)
    database.sql("create table public.payments (name text primary key)")
    yield payment_model().objects
    database.sql("drop table public.payments")


@pytest.fixture
async def app(dsn, payments):
    app = Tenure(dsn)

    @app.around_thread
    def close_connections(ctx):
        close_old_connections()
        try:
            yield
        finally:
            close_old_connections()

    yield app
    await app.close()


async def test_after_the_server_closed_their_connections_the_next_jobs_work(app, database, payments):
    @app.job(max_attempts=1)
    def pay(name: str) -> int:
        payments.create(name=name)
        return connection.connection.info.backend_pid

    async with serving(app, concurrency=1):
        first = await (await pay.enqueue("first")).result("30s")
        assert await (await pay.enqueue("second")).result("30s") == first
        assert database.sql(f"select pg_terminate_backend(pid, 5000) from ({ORM_SESSIONS}) s") == [(True,)]
        assert await (await pay.enqueue("third")).result("30s") != first


async def test_a_job_that_leaves_autocommit_off_does_not_swallow_what_the_next_one_writes(app, database, payments):
    @app.job
    def forget() -> None:
        connection.set_autocommit(False)
        payments.create(name="forgotten")

    @app.job
    def pay(name: str) -> None:
        payments.create(name=name)

    async with serving(app, concurrency=1):
        await (await forget.enqueue()).result("30s")
        await (await pay.enqueue("written")).result("30s")
        assert database.sql("select name from public.payments") == [("written",)]


async def test_coroutines_get_a_thread_of_their_own_for_the_asynchronous_orm(app, payments):
    """Without it, all synchronous code that coroutines call shares one thread of the process."""
    together = threading.Barrier(2, timeout=20)

    @app.around_coroutine
    async def own_thread(ctx):
        async with ThreadSensitiveContext():
            try:
                yield
            finally:
                await sync_to_async(connections.close_all)()

    @app.job
    async def pay(name: str) -> None:
        await payments.acreate(name=name)
        await sync_to_async(together.wait)()

    async with serving(app, concurrency=2):
        handles = [await pay.enqueue(name) for name in ("one", "two")]
        for handle in handles:
            await handle.result("20s")
