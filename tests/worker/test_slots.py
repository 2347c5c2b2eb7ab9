"""Where handlers run, and how many at a time."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from tenure import Context
from tests.waiting import until

FINISHED = "select count(*) from tenure.history"


@pytest.fixture
async def app(app):
    yield app
    await app.close()


async def test_sync_handlers_run_in_threads_and_see_the_context_variables(app, database):
    colour = contextvars.ContextVar("colour", default="none")
    seen = []

    @app.job
    def work(ctx: Context, n: int) -> str:
        seen.append((threading.current_thread() is threading.main_thread(), colour.get(), ctx.attempt))
        return f"{n}"

    colour.set("red")
    async with app.running():
        handle = await work.enqueue(4)
        await until(lambda: database.sql(FINISHED), is_=[(1,)])
    assert seen == [(False, "red", 1)]
    assert (await handle.status()).output == "4"


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_no_more_run_at_a_time_than_there_are_slots(app, database, run_in):
    running, most, lock = 0, 0, threading.Lock()

    def enter(step: int) -> None:
        nonlocal running, most
        with lock:
            running += step
            most = max(most, running)

    async def in_loop() -> None:
        enter(1)
        await asyncio.sleep(0.002)
        enter(-1)

    def in_thread() -> None:
        enter(1)
        threading.Event().wait(0.002)
        enter(-1)

    work = app.job(name="work")(in_loop if run_in == "loop" else in_thread)
    await app.enqueue_many(work.call() for _ in range(100))
    async with app.running(concurrency=3):
        await until(lambda: database.sql(FINISHED), is_=[(100,)])
    assert most == 3
