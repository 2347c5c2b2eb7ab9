"""Handlers that are aborted and do not stop: they keep no slot, and all their later writes are rejected."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from tenure import Aborted, Context, LeaseLost, Retry, RunAbandoned, Tenure
from tenure.worker.process.pool import HandlerProcess
from tests.manager.worker_helpers import alive
from tests.waiting import until
from tests.worker import handlers
from tests.worker.handlers import Order, notes
from tests.worker.serving import serving

pytestmark = pytest.mark.slow

LONG_STUBBORN = 20.0
"""Seconds for which a stubborn handler continues at most, if the test does not release it."""


@pytest.fixture
async def app(dsn):
    app = Tenure(dsn)
    yield app
    await app.close()


@pytest.fixture
def abandoned(app):
    seen = []
    app.on(RunAbandoned)(seen.append)
    return seen


def stubborn_coroutine(app, act=None, **options):
    """A job whose first run swallows every cancellation until it is released. `act(ctx)` is what it does then."""
    state = SimpleNamespace(started=asyncio.Event(), release=asyncio.Event(), over=asyncio.Event(), later=None)

    @app.job(name="stubborn", **{"timeout": "100ms", "retry": 1, **options})
    async def stubborn(ctx: Context) -> str:
        if ctx.attempt > 1:
            return await state.later(ctx) if state.later else "second run"
        state.started.set()
        async with asyncio.timeout(LONG_STUBBORN):
            while not state.release.is_set():
                try:
                    await state.release.wait()
                except asyncio.CancelledError:
                    asyncio.current_task().uncancel()
        try:
            return await act(ctx) if act else "too late"
        finally:
            state.over.set()

    state.job = stubborn
    return state


@asynccontextmanager
async def one_slot(app, *stubborn):
    """A worker with a single slot; handlers that still run are released at the end."""
    try:
        async with serving(app, concurrency=1) as worker:
            yield worker
    finally:
        for state in stubborn:
            state.release.set()


async def test_a_coroutine_that_ignores_its_cancellation_loses_its_slot(app, database, abandoned):
    @app.job
    async def after() -> str:
        return "done"

    stubborn = stubborn_coroutine(app)
    async with one_slot(app, stubborn):
        handle = await stubborn.job.enqueue()
        await stubborn.started.wait()
        assert await (await after.enqueue()).result("8s") == "done"
        assert not stubborn.over.is_set()
        [event] = abandoned
        assert (event.job_id, event.kind, event.fence, event.reason) == (handle.id, "stubborn", 1, "timeout")
        status = await handle.status()
        assert (status.state, status.output) == ("dead_letter", None)

        stubborn.release.set()
        await stubborn.over.wait()
        assert await (await after.enqueue()).result("8s") == "done"
        assert await handle.status() == status


async def test_nothing_an_abandoned_run_still_does_counts(app, database, abandoned):
    refused = []

    @app.job(queue="unserved")
    async def child() -> None: ...

    async def act(ctx: Context) -> str:
        ctx.progress(99, "too late")
        ctx.log.info("too late")
        with pytest.raises(LeaseLost) as caught:
            await child.enqueue()
        refused.append(caught.value)
        with pytest.raises(Aborted):
            ctx.heartbeat()
        return "too late"

    stubborn = stubborn_coroutine(app, act)
    async with one_slot(app, stubborn):
        handle = await stubborn.job.enqueue()
        await until(lambda: abandoned)
        await until(lambda: database.sql("select state from tenure.jobs"), is_=[("dead_letter",)])
        stubborn.release.set()
        await stubborn.over.wait()
        await until(lambda: refused)
    assert await handle.progress() is None
    assert database.sql("select count(*) from tenure.logs") == [(0,)]
    assert database.sql("select kind, state, error like '%%timed out%%' from tenure.all_jobs") == [
        ("stubborn", "dead_letter", True)
    ]


async def test_the_end_of_an_abandoned_run_does_not_touch_the_next_run_of_its_job(app, database, abandoned):
    """Both stand under the same job: the second must stay watched, counted, and requeued when the worker leaves."""
    second_started, second_ended = asyncio.Event(), []

    async def second_run(ctx: Context) -> str:
        second_started.set()
        try:
            await asyncio.sleep(60)
        finally:
            second_ended.append(ctx.signal.reason)

    @app.job
    async def after() -> str:
        return "done"

    stubborn = stubborn_coroutine(app, timeout="1h", retry=Retry(2, initial="10ms", jitter=False))
    stubborn.later = second_run
    async with one_slot(app, stubborn) as worker:
        handle = await stubborn.job.using(timeout="100ms").enqueue()
        await until(lambda: abandoned)
        database.sql("update tenure.jobs set timeout = null")  # the second run may take its time
        await second_started.wait()
        stubborn.release.set()
        await stubborn.over.wait()

        waiting = await after.enqueue()  # the only slot is taken
        with pytest.raises(TimeoutError):
            await waiting.result("1s")
        await worker.stop(0)
    assert second_ended == ["shutdown"]
    status = await handle.status()
    assert (status.state, status.attempt, status.fence) == ("pending", 1, 2)


async def test_a_thread_that_does_not_listen_loses_its_slot(app, database, abandoned):
    started, release, heard, over = threading.Event(), threading.Event(), [], threading.Event()

    @app.job(timeout="100ms", max_attempts=1)
    def stubborn(ctx: Context) -> str:
        started.set()
        release.wait(LONG_STUBBORN)
        ctx.progress(99)
        try:
            ctx.heartbeat()
        except Aborted as aborted:
            heard.append(aborted.reason)
        over.set()
        return "too late"

    @app.job
    async def after() -> str:
        return "done"

    try:
        async with serving(app, concurrency=1):
            handle = await stubborn.enqueue()
            await until(started.is_set)
            assert await (await after.enqueue()).result("8s") == "done"
            assert not over.is_set()
            [event] = abandoned
            assert (event.job_id, event.kind, event.fence, event.reason) == (handle.id, "stubborn", 1, "timeout")
            release.set()
            await until(over.is_set)
            assert await (await after.enqueue()).result("8s") == "done"
    finally:
        release.set()
    assert heard == ["timeout"]
    status = await handle.status()
    assert (status.state, status.output) == ("dead_letter", None)
    assert await handle.progress() is None


async def test_a_thread_that_listens_too_late_is_not_abandoned_but_waited_for(app, database, abandoned):
    """What it needs for its clean-up is part of the bargain."""

    @app.job(timeout="100ms", max_attempts=1)
    def listens(ctx: Context) -> None:
        ctx.signal.wait_sync(LONG_STUBBORN)
        threading.Event().wait(0.5)
        ctx.heartbeat()

    async with serving(app, concurrency=1):
        handle = await listens.enqueue()
        await until(lambda: database.sql("select state from tenure.jobs"), is_=[("dead_letter",)])
    assert "timed out" in (await handle.status()).error
    assert abandoned == []


async def test_the_start_of_a_process_does_not_count_as_time_of_its_handler(dsn, monkeypatch):
    spawn = HandlerProcess.spawn

    async def spawn_slowly(self: HandlerProcess, *args: object) -> None:
        await asyncio.sleep(1.5)  # longer than the handler may run
        await spawn(self, *args)

    monkeypatch.setattr(HandlerProcess, "spawn", spawn_slowly)
    monkeypatch.setenv("TENURE_DSN", dsn)
    handlers.app.configure()
    async with serving(handlers.app, concurrency=1):
        handle = await handlers.JOBS["process"].using(timeout="1s", max_attempts=1).enqueue(Order(act="give"))
        await handle.result("20s")
    await handlers.app.close()


async def test_a_process_that_does_not_listen_is_killed(dsn, database, monkeypatch, tmp_path):
    monkeypatch.setenv("TENURE_DSN", dsn)
    handlers.app.configure()
    app = handlers.app
    async with serving(app, concurrency=1):
        handle = await handlers.STUBBORN.enqueue(Order(act="", folder=str(tmp_path)))
        [entry] = await until(lambda: notes(tmp_path))
        after = await handlers.JOBS["loop"].enqueue(Order(act="give"))
        await after.result("8s")
        assert not alive(entry["pid"])
        assert (await handle.status()).state == "dead_letter"
        assert database.sql("select what from tenure.incidents") == [("timed_out",)]
    await app.close()
