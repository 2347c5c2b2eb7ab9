"""`ctx.transaction(source)`: a session factory, engine or pool of the handler's. It commits with what the handler returns."""

from __future__ import annotations

from typing import Any

import asyncpg
import psycopg
import psycopg_pool
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from tenure import Context, Tenure
from tests.store.borrowed.callers import for_asyncpg
from tests.transactions.handlers import AT_ONCE, INSERT
from tests.transactions.own_sessions import NAMED
from tests.transactions.test_blocks import names, run


@pytest.fixture
async def app(dsn, shop):
    app = Tenure(dsn)
    yield app
    await app.close()


class Opened:
    """A source, how to insert by what it gives, and how many of its connections are in use."""

    def __init__(self, source: Any, insert: Any, in_use: Any, close: Any) -> None:
        self.source, self.insert, self.in_use, self.close = source, insert, in_use, close


def alchemy_insert(session, name):
    return session.execute(NAMED, {"name": name})


def psycopg_insert(connection, name):
    return connection.execute(INSERT, [name])


def asyncpg_insert(connection, name):
    return connection.execute("insert into public.payments (name) values ($1)", name)


async def sessions(dsn):
    engine = create_async_engine("postgresql+asyncpg://", connect_args=for_asyncpg(dsn), pool_size=1, max_overflow=0)
    return Opened(async_sessionmaker(engine), alchemy_insert, engine.pool.checkedout, engine.dispose)


async def async_engine(dsn):
    engine = create_async_engine("postgresql+psycopg_async://", connect_args=conninfo_to_dict(dsn), pool_size=1, max_overflow=0)
    return Opened(engine, alchemy_insert, engine.pool.checkedout, engine.dispose)


async def psycopg_pool_async(dsn):
    pool = psycopg_pool.AsyncConnectionPool(dsn, min_size=1, max_size=1, open=False)
    await pool.open()
    return Opened(pool, psycopg_insert, lambda: 1 - pool.get_stats()["pool_available"], pool.close)


async def asyncpg_pool(dsn):
    pool = await asyncpg.create_pool(**for_asyncpg(dsn), min_size=1, max_size=1)
    return Opened(pool, asyncpg_insert, lambda: 1 - pool.get_idle_size(), pool.close)


def plain(opened):
    async def close():
        opened.close()

    return Opened(opened.source, opened.insert, opened.in_use, close)


def engine_of(dsn):
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), pool_size=1, max_overflow=0)


async def sync_sessions(dsn):
    engine = engine_of(dsn)
    return plain(Opened(sessionmaker(engine), alchemy_insert, engine.pool.checkedout, engine.dispose))


async def sync_engine(dsn):
    engine = engine_of(dsn)
    return plain(Opened(engine, alchemy_insert, engine.pool.checkedout, engine.dispose))


async def psycopg_pool_sync(dsn):
    pool = psycopg_pool.ConnectionPool(dsn, min_size=1, max_size=1, open=True)
    return plain(Opened(pool, psycopg_insert, lambda: 1 - pool.get_stats()["pool_available"], pool.close))


ASYNC = (sessions, async_engine, psycopg_pool_async, asyncpg_pool)
SYNC = (sync_sessions, sync_engine, psycopg_pool_sync)
EVERY = pytest.mark.parametrize("made", [*ASYNC, *SYNC])


@pytest.fixture
async def opened(made, dsn):
    opened = await made(dsn)
    yield opened
    assert opened.in_use() == 0
    await opened.close()


def job(app, opened, made, after=None, **options):
    async def work(ctx: Context) -> str:
        async with ctx.transaction(opened.source) as session:
            await opened.insert(session, "written")
        assert opened.in_use() == 1
        if after:
            after()
        return "returned"

    def work_sync(ctx: Context) -> str:
        with ctx.transaction(opened.source) as session:
            opened.insert(session, "written")
        assert opened.in_use() == 1
        if after:
            after()
        return "returned"

    return app.job(name="work", **options)(work if made in ASYNC else work_sync)


@EVERY
async def test_writes_and_the_returned_result_are_one_transaction(app, shop, made, opened):
    status = await run(app, job(app, opened, made, after=lambda: names(shop) and pytest.fail("committed too early")))
    assert (status.state, status.output) == ("completed", "returned")
    same = "select count(distinct xmin::text) from (select xmin from public.payments union select xmin from tenure.history) x"
    assert shop.sql(same) == [(1,)]


@EVERY
async def test_what_is_raised_after_the_block_undoes_all_of_it(app, shop, made, opened):
    def fail():
        raise ValueError("after the block")

    status = await run(app, job(app, opened, made, after=fail, retry=AT_ONCE))
    assert (status.state, status.attempt) == ("dead_letter", 3)
    assert "ValueError: after the block" in status.error
    assert names(shop) == []


@pytest.mark.slow
@EVERY
async def test_a_source_that_leads_to_another_database_is_refused(app, shop, made, bare_dsn):
    elsewhere = await made(bare_dsn)
    status = await run(app, job(app, elsewhere, made, max_attempts=1))
    assert "TransactionError: ctx.transaction() was given a connection on which this job cannot be seen" in status.error
    assert elsewhere.in_use() == 0
    await elsewhere.close()


@pytest.mark.parametrize("made", [sessions])
async def test_a_source_may_be_named_again_inside_of_its_block(app, shop, made, opened):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> bool:
        async with ctx.transaction(opened.source) as outer, ctx.transaction(opened.source) as inner, ctx.db() as innermost:
            await opened.insert(inner, "once")
            return outer is inner is innermost

    status = await run(app, work)
    assert (status.output, names(shop)) == (True, ["once"])


async def test_a_session_that_cannot_be_closed_does_not_undo_what_is_committed(app, shop, dsn, caplog):
    class Clinging(Session):
        def close(self) -> None:
            super().close()
            raise OSError("cannot let go")

    engine = engine_of(dsn)

    @app.job(max_attempts=1)
    def work(ctx: Context) -> str:
        with ctx.transaction(sessionmaker(engine, class_=Clinging)) as session:
            alchemy_insert(session, "written")
        return "done"

    status = await run(app, work)
    assert (status.state, status.output, names(shop)) == ("completed", "done", ["written"])
    assert "could not be returned to where it came from" in caplog.text
    engine.dispose()


@pytest.mark.parametrize("made", [sessions])
async def test_a_source_of_connections_that_need_await_is_refused_in_a_plain_function(app, shop, made, opened):
    @app.job(max_attempts=1)
    def work(ctx: Context) -> None:
        with ctx.transaction(opened.source):
            pass

    assert "ConfigError: async_sessionmaker gives connections that need await" in (await run(app, work)).error


async def test_what_is_neither_a_connection_nor_a_source_is_refused_with_what_is_understood(app, shop):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with ctx.transaction("postgresql://"):
            pass

    error = (await run(app, work)).error
    assert "pass a psycopg Connection" in error
    assert "a SQLAlchemy sessionmaker" in error
