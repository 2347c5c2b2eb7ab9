"""Connections that break and handlers that do not listen, at the worst moments: still exactly once."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager, suppress

import pytest

from tenure import Context, JobSettled, RunAbandoned, RunLost, Tenure
from tenure.chaos.proxy import Proxy
from tenure.worker.run.open_transaction import OpenTransaction
from tests.transactions.handlers import EXECUTORS, INSERT, with_own_session
from tests.waiting import until
from tests.worker.serving import serving

HANDLERS = "datname = current_database() and application_name = 'tenure handler'"


def cut(shop):
    """The server ends the connection of the handler, in the middle of its transaction."""
    assert shop.sql(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {HANDLERS}") == [(True,)]


@pytest.mark.parametrize(
    ("executor", "point"),
    [
        *((executor, point) for executor in ("in_loop", "in_thread") for point in ("written", "leaving", "left")),
        pytest.param("in_process", "leaving", marks=pytest.mark.slow),
        pytest.param("in_process_loop", "left", marks=pytest.mark.slow),
    ],
)
async def test_a_connection_that_breaks_before_the_commit_costs_an_attempt_and_nothing_else(app, shop, points, executor, point):
    points.hold(point)
    async with serving(app, queues=["default"]):
        await EXECUTORS[executor].enqueue("ada")
        await points.reached(point)
        cut(shop)
        points.go(point)
        await shop.comes_to("ada", 1, 1, "completed")
    assert shop.of("ada", "attempt", "fence", "crashes", "output") == (2, 2, 0, "paid ada")
    # Not the second run: if the worker stops between its commit and its return, that is recorded as well.
    [(what, error)] = shop.sql("select what, error from tenure.incidents where attempt = 1")
    assert (what, "connection" in error) == ("failed", True)


@pytest.fixture
def events(app):
    """The events that subscribers receive."""
    seen: list[JobSettled | RunLost] = []
    app.on(JobSettled, RunLost)(seen.append)
    yield seen
    app.events.__init__()


@pytest.fixture
async def cutter(app, dsn, monkeypatch):
    """On the way of a worker that is running."""
    cutter = Proxy(dsn)
    async with cutter.open() as cut_dsn:
        monkeypatch.setenv("TENURE_DSN", cut_dsn)
        async with serving(app, queues=["default"]):
            yield cutter


@pytest.mark.parametrize(
    "executor",
    [*(pytest.param(name, marks=pytest.mark.slow) if "process" in name else name for name in EXECUTORS), "with_own_session"],
)
async def test_a_commit_whose_answer_is_lost_counts_once_and_is_not_taken_for_lost(cutter, shop, points, events, executor):
    own = executor == "with_own_session"
    job = with_own_session if own else EXECUTORS[executor]
    points.hold("leaving")
    handle = await job.enqueue("ada")
    await points.reached("leaving")
    cutter.lose_answer("own" if own else "handler", when_seen=b"COMMIT")
    points.go("leaving")
    assert await handle.result(timeout=30) == "paid ada"
    await until(lambda: cutter.cuts, is_=1)  # the result is stored before the answer to the COMMIT is on its way
    assert shop.seen("ada") == (1, 1, "completed")
    assert shop.of("ada", "attempt", "fence", "crashes") == (1, 1, 0)
    assert [entry["fence"] for entry in points.passed("written")] == [1]
    assert shop.sql("select what from tenure.incidents") == []
    await until(lambda: events)
    assert [type(event) for event in events] == [JobSettled]


async def test_a_job_whose_commit_was_not_answered_is_reported_as_what_it_is(cutter, shop, points, events):
    points.hold("leaving")
    await EXECUTORS["in_loop"].enqueue("ada")
    await points.reached("leaving")
    cutter.lose_answer("handler", when_seen=b"COMMIT")
    points.go("leaving")
    await until(lambda: events)
    assert [(type(event), event.state) for event in events] == [(JobSettled, "completed")]


async def test_a_commit_that_was_never_sent_is_made_again(cutter, shop, points):
    """The answer to the settling statement is lost, just before it."""
    points.hold("leaving")
    await EXECUTORS["in_loop"].enqueue("ada")
    await points.reached("leaving")
    cutter.lose_answer("handler", when_seen=b"INSERT 0 1")
    points.go("leaving")
    await shop.comes_to("ada", 1, 1, "completed")
    assert cutter.cuts == 1
    assert shop.of("ada", "attempt", "fence") == (2, 2)


@pytest.fixture
async def impatient(dsn, shop, monkeypatch, caplog):
    """An app whose worker does not wait long for handlers that ignore an abort."""
    for module in ("calling", "monitor"):
        monkeypatch.setattr(f"tenure.worker.run.{module}.ABORT_PATIENCE", 0.1)
    caplog.set_level(logging.CRITICAL, "tenure")
    app = Tenure(dsn)
    app.abandoned = []
    app.on(RunAbandoned)(app.abandoned.append)
    yield app
    await app.close()


async def left_alone(app, shop):
    """The handler was aborted and did not stop, and its transaction was ended by the worker."""
    await until(lambda: app.abandoned)
    await until(lambda: shop.sql(f"select count(*) from pg_stat_activity where {HANDLERS} and state <> 'idle'"), is_=[(0,)])


@asynccontextmanager
async def honest_work(app):
    """A worker; at the end others use the connections of its pools."""

    @app.job(atomic=True)
    async def in_loop(ctx: Context, name: str) -> None:
        async with ctx.db() as tx:
            await tx.execute(INSERT, [name])

    @app.job(atomic=True)
    def in_thread(ctx: Context, name: str) -> None:
        with ctx.db() as tx:
            tx.execute(INSERT, [name])

    async with serving(app, concurrency=1) as worker:
        yield worker
        for job in (in_loop, in_thread):
            await (await job.enqueue(f"honest {job.name}")).result(timeout=30)


HONEST = [("honest in_loop",), ("honest in_thread",)]


async def test_what_an_abandoned_thread_still_writes_is_never_committed(impatient, shop):
    """It continues with a connection that others may be using by now."""
    go_on, wrote = threading.Event(), threading.Event()

    @impatient.job(max_attempts=1, timeout="50ms")
    def ignores_abort(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute(INSERT, ["before"])
            go_on.wait(20)
            try:
                tx.execute(INSERT, ["after"])
            finally:
                wrote.set()

    async with honest_work(impatient):
        await ignores_abort.enqueue()
        await left_alone(impatient, shop)
        go_on.set()
        await until(wrote.is_set)
    assert shop.sql("select name from public.payments order by 1") == HONEST


async def test_what_an_abandoned_coroutine_still_writes_is_never_committed(impatient, shop):
    go_on, wrote = asyncio.Event(), asyncio.Event()

    @impatient.job(max_attempts=1, timeout="50ms")
    async def ignores_abort(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            await tx.execute(INSERT, ["before"])
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            await go_on.wait()
            try:
                await tx.execute(INSERT, ["after"])
            finally:
                wrote.set()

    async with honest_work(impatient):
        await ignores_abort.enqueue()
        await left_alone(impatient, shop)
        go_on.set()
        await until(wrote.is_set)
    assert shop.sql("select name from public.payments order by 1") == HONEST


async def test_a_handler_whose_own_timer_cancels_it_during_the_commit_is_reported_as_what_it_is(app, shop, events, monkeypatch):
    commit = OpenTransaction.commit

    async def committed_and_canceled(self, *arguments):
        await commit(self, *arguments)
        raise asyncio.CancelledError

    monkeypatch.setattr(OpenTransaction, "commit", committed_and_canceled)
    async with serving(app, queues=["default"]):
        await EXECUTORS["in_loop"].enqueue("ada")
        await shop.comes_to("ada", 1, 1, "completed")
        [event] = await until(lambda: events)
    assert (type(event), event.what) == (JobSettled, "completed")
