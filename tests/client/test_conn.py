"""Enqueuing through a connection of the caller's is part of its transaction, with every driver."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from tenure import ConfigError, Context, InvalidPayload, Tenure, inprocess
from tests.store.borrowed import callers
from tests.store.borrowed.callers import AsyncCaller, Caller
from tests.waiting import until
from tests.worker.serving import serving

CALLERS: list[type[Caller]] = [
    callers.Psycopg,
    callers.PsycopgAsync,
    callers.Asyncpg,
    callers.AlchemySession,
    callers.AlchemyConnection,
    callers.AlchemyAsyncSession,
    callers.AlchemyAsyncConnectionPsycopg,
    callers.Django,
]
"""One for each way of asking; all the others are put to the test in store/borrowed."""


class UndoError(Exception):
    pass


@pytest.fixture
def shop(dsn, database):
    """A table of the caller's, and what other sessions can see: its rows, and the jobs."""
    database.sql("create table public.orders (name text)")
    yield lambda: (
        [name for (name,) in database.sql("select name from public.orders order by 1")],
        [name for (name,) in database.sql("select input ->> 'name' from tenure.all_jobs order by id")],
    )
    database.sql("drop table public.orders")


@pytest.fixture
def app(dsn):
    app = Tenure(dsn)

    @app.job(queue="mail")
    async def ship(ctx: Context, name: str) -> str:
        return f"shipped {name}"

    app.ship = ship
    yield app
    app._portal.close()


@pytest.fixture
def opened(dsn, shop):
    made = []

    def open_one(kind: type[Caller]) -> Caller:
        made.append(kind(dsn))
        return made[-1]

    yield open_one
    for caller in made:
        caller.close()


@pytest.fixture(params=CALLERS, ids=lambda kind: kind.__name__)
def caller(request, opened):
    return opened(request.param)


def enqueue_in(app, caller, name, **options):
    job = app.ship.using(conn=caller.connection, **options)
    if isinstance(caller, AsyncCaller):
        return caller.wait(job.enqueue(name))
    return job.enqueue_sync(name)


def enqueue_many_in(app, caller, *names):
    calls = (app.ship.call(name) for name in names)
    if isinstance(caller, AsyncCaller):
        return caller.wait(app.enqueue_many(calls, conn=caller.connection))
    return app.enqueue_many_sync(calls, conn=caller.connection)


def insert(caller, name):
    caller.run(f"insert into public.orders values ('{name}')")


def test_the_job_and_the_callers_row_are_committed_together(app, caller, shop):
    with caller.transaction():
        insert(caller, "ada")
        handle = enqueue_in(app, caller, "ada")
        assert shop() == ([], [])
    assert shop() == (["ada"], ["ada"])
    status = handle.status_sync()
    assert (status.kind, status.queue, status.state, handle.existed) == ("ship", "mail", "pending", False)


def test_the_job_its_key_and_the_callers_row_are_rolled_back_together(app, caller, shop):
    with suppress(UndoError), caller.transaction():
        insert(caller, "undone")
        enqueue_in(app, caller, "undone", key="k")
        raise UndoError
    assert shop() == ([], [])
    with caller.transaction():
        first = enqueue_in(app, caller, "ada", key="k")
        again = enqueue_in(app, caller, "bo", key="k")
    assert (first.existed, again.existed, again.same_input, again.id) == (False, True, False, first.id)
    assert shop() == ([], ["ada"])


def test_many_jobs_are_part_of_the_transaction(app, caller, shop, database):
    with suppress(UndoError), caller.transaction():
        enqueue_many_in(app, caller, "never", "ever")
        raise UndoError
    with caller.transaction():
        insert(caller, "many")
        handles = enqueue_many_in(app, caller, "ada", "bo", "cy")
        assert enqueue_many_in(app, caller) == []
    assert shop() == (["many"], ["ada", "bo", "cy"])
    assert database.sql("select id from tenure.jobs order by position") == [(handle.id,) for handle in handles]


@pytest.mark.parametrize("kind", CALLERS, ids=lambda kind: kind.__name__)
async def test_a_running_worker_is_woken_by_the_commit_and_not_by_its_poll(app, dsn, monkeypatch, kind):
    made = inprocess.engine_settings
    never = {"poll_busy": 3600.0, "poll_idle": 3600.0}
    monkeypatch.setattr(inprocess, "engine_settings", lambda *given: replace(made(*given), **never))
    claimed = await looks_for_work(monkeypatch)

    def in_one_transaction():
        with closing(kind(dsn)) as caller, caller.transaction():
            return enqueue_in(app, caller, "ada")

    async with serving(app):
        await until(lambda: len(claimed) >= 2)  # once at the start, once when it began to listen
        handle = await asyncio.to_thread(in_one_transaction)
        assert await handle.result(timeout=30) == "shipped ada"
    await app.close()


async def looks_for_work(monkeypatch):
    """Grows by one with each look of the worker."""
    from tenure.worker.claim.claimer import Claimer

    claim, looks = Claimer.claim, []

    async def counted(self, limit):
        found = await claim(self, limit)
        looks.append(len(found))
        return found

    monkeypatch.setattr(Claimer, "claim", counted)
    return looks


@pytest.mark.parametrize("given", [object(), "postgresql://", 7], ids=["an object", "a dsn", "a number"])
async def test_what_is_no_connection_is_refused_with_what_is_understood(app, database, given):
    for attempt in (
        lambda: app.ship.using(conn=given).enqueue_sync("ada"),
        lambda: app.enqueue_many_sync([app.ship.call("ada")], conn=given),
    ):
        with pytest.raises(ConfigError, match="pass a psycopg Connection"):
            attempt()
    with pytest.raises(ConfigError, match="SQLAlchemy Session"):
        await app.ship.using(conn=given).enqueue("ada")
    with pytest.raises(ConfigError, match="asyncpg Connection"):
        await app.enqueue_many([app.ship.call("ada")], conn=given)
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


@pytest.mark.parametrize(
    "kind", [callers.PsycopgAsync, callers.Asyncpg, callers.AlchemyAsyncSession], ids=lambda kind: kind.__name__
)
def test_an_asynchronous_connection_is_refused_in_synchronous_code_with_the_way_out(app, opened, shop, kind):
    caller = opened(kind)
    with pytest.raises(ConfigError, match="can only be used with await"):
        app.ship.using(conn=caller.connection).enqueue_sync("ada")
    assert shop() == ([], [])


async def test_a_synchronous_connection_works_in_a_coroutine_too(app, dsn, shop):
    import psycopg

    with psycopg.connect(dsn) as connection:
        await app.ship.using(conn=connection).enqueue("ada")
        await app.enqueue_many([app.ship.call("bo")], conn=connection)
        assert shop() == ([], [])
    assert shop() == ([], ["ada", "bo"])


@pytest.mark.parametrize("kind", [callers.Psycopg, callers.AlchemyAsyncSession, callers.Django])
def test_a_job_that_postgresql_refuses_is_reported_as_without_a_connection(app, opened, shop, kind):
    caller = opened(kind)
    refused = app.ship.using(conn=caller.connection)
    refused._maker._fields = replace(refused._maker._fields, queue="")
    with pytest.raises(InvalidPayload, match="PostgreSQL refuses the job"), caller.transaction():
        insert(caller, "ada")
        if isinstance(caller, AsyncCaller):
            caller.wait(refused.enqueue("ada"))
        else:
            refused.enqueue_sync("ada")
    assert shop() == ([], [])


def test_the_options_of_the_call_count(app, opened, database):
    caller = opened(callers.Psycopg)
    with caller.transaction():
        enqueue_in(app, caller, "ada", queue="post", priority="low", delay="1h", auth={"user": 7}, meta={"a": 1}, max_attempts=9)
    columns = "queue, priority, state, auth, meta, max_attempts"
    assert database.sql(f"select {columns} from tenure.jobs") == [("post", 25, "scheduled", {"user": 7}, {"a": 1}, 9)]
