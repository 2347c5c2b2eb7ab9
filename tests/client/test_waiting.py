"""How waiting clients learn of changes: by a notification, or by polling where notifications are not delivered."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tenure import Context, Fail, JobCanceled, JobFailed, JobNotFound, Retry
from tenure.client import waiting
from tenure.store import wakeups
from tenure.store.listener import Listener
from tests.waiting import until
from tests.worker.serving import serving

LINES = "datname = current_database() and application_name = 'tenure wakeups'"
AT_ONCE = Retry(max_attempts=2, initial="10ms", max_backoff="10ms", jitter=False)


@pytest.fixture
async def app(app):
    yield app
    await app.close()


@pytest.fixture
def never_polls(monkeypatch):
    """A waiting client is notified, or waits for ever."""
    monkeypatch.setattr(waiting, "FIRST_LOOK", 3600.0)
    monkeypatch.setattr(waiting, "LONGEST_LOOK", 3600.0)


@pytest.fixture
def without_notifications(monkeypatch):
    """LISTEN is accepted, and nothing is delivered, as by a pooler in transaction mode."""

    class SilentListener(Listener):
        def _take(self, payload: str) -> None: ...

        def _on_missed(self) -> None: ...

    monkeypatch.setattr(wakeups, "Listener", SilentListener)


def define(app, dsn, go_on):
    """Jobs that end in all the ways in which a job can end."""

    @app.job
    async def in_loop() -> str:
        await go_on.wait()
        return "all done"

    @app.job
    def in_thread() -> str:
        asyncio.run_coroutine_threadsafe(go_on.wait(), app.loop).result()
        return "all done"

    @app.job(atomic=True)
    async def atomic(ctx: Context) -> str:
        await go_on.wait()
        return "all done"

    @app.job
    async def own_session(ctx: Context) -> str:
        await go_on.wait()
        async with await psycopg.AsyncConnection.connect(dsn) as connection, ctx.transaction(connection):
            ctx.set_output("all done")
        return "all done"

    @app.job
    async def fails() -> str:
        await go_on.wait()
        raise Fail("all done")

    @app.job(retry=AT_ONCE)
    async def raises() -> str:
        await go_on.wait()
        raise ValueError("all done")

    app.loop = asyncio.get_running_loop()
    return {job.name: job for job in (in_loop, in_thread, atomic, own_session, fails, raises)}


WAYS = ["in_loop", "in_thread", "atomic", "own_session", "fails", "raises"]


async def outcome(handle):
    try:
        return await handle.result(timeout=30)
    except JobFailed as failed:
        return failed.message


async def is_waited_for(database, count=1):
    await until(lambda: database.sql("select count(*) from tenure.watches"), is_=[(count,)])
    await until(lambda: listening(database), is_=1)  # the worker and the client share it


def listening(database):
    return database.sql(f"select count(*) from pg_stat_activity where {LINES}")[0][0]


@pytest.mark.parametrize("way", WAYS)
async def test_a_waiting_client_is_woken_by_the_worker(app, dsn, database, never_polls, way):
    go_on = asyncio.Event()
    job = define(app, dsn, go_on)[way]
    async with serving(app):
        results = asyncio.create_task(outcome(await job.enqueue()))
        await is_waited_for(database)
        go_on.set()
        assert await results == "all done"


@pytest.mark.parametrize("decision", ["cancel", "delete"])
async def test_a_waiting_client_is_woken_by_a_decision(app, dsn, database, never_polls, decision):
    handle = await define(app, dsn, asyncio.Event())["in_loop"].using(delay="1h").enqueue()
    waits = asyncio.create_task(handle.result())
    await until(lambda: (database.sql("select count(*) from tenure.watches"), listening(database)), is_=([(1,)], 1))
    await getattr(handle, decision)()
    with pytest.raises(JobCanceled if decision == "cancel" else JobNotFound):
        async with asyncio.timeout(5):
            await waits


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_without_notifications_polls(app, dsn, database, without_notifications, way):
    go_on = asyncio.Event()
    job = define(app, dsn, go_on)[way]
    async with serving(app):
        results = asyncio.create_task(outcome(await job.enqueue()))
        await until(lambda: database.sql("select state from tenure.jobs"), is_=[("running",)])
        go_on.set()
        assert await results == "all done"


async def test_looks_become_fewer_with_time_and_are_never_later_than_wanted(monkeypatch):
    timeout, waits = asyncio.timeout, []

    def at_once(seconds):
        waits.append(seconds)
        return timeout(0)

    monkeypatch.setattr(asyncio, "timeout", at_once)
    news = waiting.News()
    for longest in [60.0] * 20 + [0.01]:
        await news.wait(longest)
    *growing, last = waits
    assert (growing[0], growing[-1], last) == (waiting.FIRST_LOOK, waiting.LONGEST_LOOK, 0.01)
    assert growing == sorted(growing)


async def test_a_listener_that_breaks_while_a_client_waits_reconnects_and_nothing_is_missed(app, dsn, database, never_polls):
    go_on = asyncio.Event()
    job = define(app, dsn, go_on)["in_loop"]
    async with serving(app):
        handle = await job.enqueue()
        results = asyncio.create_task(outcome(handle))
        await is_waited_for(database)
        assert database.sql(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {LINES}") == [(True,)]
        go_on.set()
        assert await results == "all done"


async def test_all_waits_in_one_loop_share_one_listener_and_leave_nothing_behind(app, dsn, database, never_polls):
    go_on = asyncio.Event()
    job = define(app, dsn, go_on)["in_loop"]
    async with serving(app):
        handles = [await job.enqueue() for _ in range(5)]
        results = [asyncio.create_task(outcome(handle)) for handle in handles for _ in range(3)]
        given_up = asyncio.create_task(handles[0].result())
        await is_waited_for(database, 5)
        given_up.cancel()
        go_on.set()
        assert await asyncio.gather(*results) == ["all done"] * 15
    assert app._connections.session().waiting._waiters == {}
    assert given_up.cancelled()


async def test_a_watch_yields_states_and_progress_in_order_and_ends_with_the_job(app, database, never_polls):
    steps = [asyncio.Event() for _ in range(3)]

    @app.job(retry=AT_ONCE)
    async def work(ctx: Context) -> str:
        if ctx.attempt == 1:
            await steps[0].wait()
            ctx.progress(10, "begun")
            await steps[1].wait()
            ctx.progress(60.5)
            await steps[2].wait()
            raise ValueError("again")
        return "all done"

    handle = await work.enqueue()
    seen = []
    async for update in handle.watch():
        progress = update.progress and (update.progress.percent, update.progress.message)
        seen.append((str(update.status.state), progress))
        match seen[-1]:
            case ("pending", None):
                worker = app.worker(grace=0)
                await worker.start()
                database.sql("select pg_notify('tenure', %s)", f"progress {handle.id}")
                await until(lambda: database.sql("select state from tenure.jobs"), is_=[("running",)])
            case ("running", None):
                steps[0].set()
            case ("running", (10.0, _)):
                steps[1].set()
            case ("running", (60.5, _)) if update.status.attempt == 1:
                steps[2].set()
    await worker.stop()
    assert seen[:4] == [("pending", None), ("running", None), ("running", (10.0, "begun")), ("running", (60.5, None))]
    assert seen[-1][0] == "completed"
    assert {state for state, _ in seen[4:-1]} <= {"retry", "pending", "running"}
    assert [update.status.state async for update in handle.watch()] == ["completed"]
