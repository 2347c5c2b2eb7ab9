"""What was confirmed to a client survives kill -9 of the server."""

from __future__ import annotations

import asyncio

import pytest

from tenure import Tenure
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
async def app(dsn, queue):
    # Nothing gets to the disk by itself in time: what is there after the crash was written before it was confirmed.
    queue.sql("alter system set wal_writer_delay = '10s'")
    queue.sql("select pg_reload_conf()")
    await until(lambda: queue.sql("show wal_writer_delay"), is_=[("10s",)])
    app = Tenure(dsn)
    app.may_end = asyncio.Event()

    @app.job
    async def until_released() -> str:
        await app.may_end.wait()
        return "done"

    app.until_released = until_released
    yield app
    await app.close()


async def crash(server_control):
    await server_control.kill()
    await asyncio.to_thread(server_control.start)


async def test_jobs_that_were_accepted_are_there_after_a_crash_of_the_server(app, queue, server_control):
    one = await app.until_released.enqueue()
    await crash(server_control)
    assert queue.of(str(one.id), "state") == ("pending",)

    many = await app.enqueue_many(app.until_released.call() for _ in range(20))
    await crash(server_control)
    assert queue.states(*(str(handle.id) for handle in many)) == {"pending": 20}


async def test_a_job_whose_result_was_returned_is_completed_after_a_crash_of_the_server(app, queue, server_control):
    async with app.running():
        handle = await app.until_released.enqueue()
        told = asyncio.create_task(handle.result())
        await until(lambda: queue.sql("select 1 from tenure.watches"))
        await until(lambda: queue.of(str(handle.id), "state"), is_=("running",))
        app.may_end.set()
        assert await told == "done"
        await crash(server_control)
        assert queue.of(str(handle.id), "state", "fence") == ("completed", 1)
