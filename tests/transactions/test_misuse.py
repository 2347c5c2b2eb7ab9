"""Transactions used otherwise than meant: told clearly, and never half done."""

from __future__ import annotations

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from tenure import Context, Tenure
from tests.store.borrowed.callers import for_asyncpg
from tests.transactions.handlers import INSERT
from tests.transactions.own_sessions import NAMED, alchemy_async_session
from tests.transactions.test_blocks import names, run


@pytest.fixture
async def app(dsn, shop):
    app = Tenure(dsn)
    yield app
    await app.close()


async def refused(app, job, words):
    status = await run(app, job)
    assert (status.state, words in (status.error or "")) == ("dead_letter", True), status.error


async def test_a_session_given_inside_of_another_transaction_is_refused(app, shop, dsn):
    """It would be another transaction, which would never be committed."""

    @app.job(max_attempts=1, atomic=True)
    async def work(ctx: Context) -> None:
        async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
            await insert("by session")

    await refused(app, work, "ConfigError")
    assert names(shop) == []


async def test_the_same_session_given_twice_is_the_same_transaction(app, shop, dsn):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with (
            alchemy_async_session(dsn) as (session, insert),
            ctx.transaction(session),
            ctx.transaction(session) as inner,
            ctx.transaction() as innermost,
        ):
            assert inner is innermost is session
            await insert("by session")

    assert (await run(app, work)).state == "completed"
    assert names(shop) == ["by session"]


async def test_a_transaction_after_the_job_was_completed_by_its_own_session_is_refused(app, shop, dsn):
    """What is written there could never be committed with the job."""
    caught: list[str] = []

    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
            await insert("first")
        try:
            async with ctx.transaction() as tx:
                await tx.execute(INSERT, ["second"])
        except Exception as error:
            caught.append(f"{type(error).__name__}: {error}")
            raise

    assert (await run(app, work)).state == "completed"
    assert (names(shop), len(caught)) == (["first"], 1)
    assert "completed" in caught[0]


async def test_a_session_that_needs_await_is_refused_in_a_plain_with(app, shop, dsn):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with alchemy_async_session(dsn) as (session, _insert):
            with ctx.transaction(session):
                pass

    await refused(app, work, "ConfigError: this connection can only be used with await")


async def test_a_plain_session_in_a_coroutine_works_in_place(app, shop, dsn, recwarn):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> str:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)
        with Session(engine) as session:
            async with ctx.transaction(session):
                session.execute(NAMED, {"name": "in place"})
                ctx.set_output("done")
        return "done"

    assert (await run(app, work)).output == "done"
    assert names(shop) == ["in place"]
    assert [str(warning.message) for warning in recwarn] == []


async def test_a_connection_inside_of_its_own_transaction_block_is_refused_with_the_way_out(app, shop, dsn):
    @app.job(max_attempts=1)
    async def by_asyncpg(ctx: Context) -> None:
        connection = await asyncpg.connect(**for_asyncpg(dsn))
        try:
            async with connection.transaction(), ctx.transaction(connection):
                await connection.execute("insert into public.payments values ('asyncpg')")
        finally:
            await connection.close()

    @app.job(max_attempts=1)
    async def by_psycopg(ctx: Context) -> None:
        async with (
            await psycopg.AsyncConnection.connect(dsn) as connection,
            connection.transaction(),
            ctx.transaction(connection),
        ):
            await connection.execute(INSERT, ["psycopg"])

    for job in (by_asyncpg, by_psycopg):
        await refused(app, job, "outside of its own transaction() block")
    assert names(shop) == []


async def test_what_is_no_connection_is_refused_with_what_is_understood(app, shop):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with ctx.transaction("postgresql://"):
            pass

    await refused(app, work, "pass a psycopg Connection")


async def test_an_output_that_does_not_fit_is_reported_in_the_block_and_leaves_the_session_rolled_back(app, shop, dsn):
    seen: list[bool] = []

    @app.job(max_attempts=1)
    async def work(ctx: Context) -> str:
        async with alchemy_async_session(dsn) as (session, insert):
            try:
                async with ctx.transaction(session):
                    await insert("undone")
                    ctx.set_output(7)
            finally:
                seen.append(session.in_transaction())
        return "never"

    await refused(app, work, "InvalidOutput")
    assert (seen, names(shop)) == ([False], [])
