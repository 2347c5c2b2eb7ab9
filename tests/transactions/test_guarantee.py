"""Exactly once cannot be lost silently: a transaction that the handler ends by itself, or that is not one, is refused."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from tenure import Context, LeaseLost, Tenure
from tests.store.borrowed.callers import for_asyncpg
from tests.store.forged_jobs import change_state, take_over
from tests.transactions.handlers import AT_ONCE, INSERT
from tests.transactions.own_sessions import ASYNC, NAMED, SYNC, alchemy_async_session
from tests.transactions.test_blocks import names, run

COMMIT_BY_THEMSELVES = ("psycopg_async_autocommit", "asyncpg_connection")
"""Outside of a transaction, each statement is one."""

STAYS = "What the handler committed stays in the database"


@pytest.fixture
async def app(dsn, shop):
    app = Tenure(dsn)
    yield app
    await app.close()


def raw(session, word):
    """COMMIT or ROLLBACK past the driver's own bookkeeping."""
    return session.execute(text(word) if "sqlalchemy" in type(session).__module__ else word)


async def end_async(session, word):
    if hasattr(session, word) and not hasattr(session, "fetchrow"):
        with suppress(psycopg.ProgrammingError):  # psycopg refuses it inside of its block
            await getattr(session, word)()
            return
    await raw(session, word)


def end_sync(session, word):
    with suppress(psycopg.ProgrammingError):
        getattr(session, word)()
        return
    raw(session, word)


def ending(app, dsn, made, *, sync, word, then=None):
    """A job that ends its transaction by itself, in the middle of the block."""

    async def work(ctx: Context) -> str:
        async with made(dsn) as (session, insert), ctx.transaction(session):
            await insert("before")
            await end_async(session, word)
            await insert("after")
            if then:
                raise then
        return "done"

    def work_sync(ctx: Context) -> str:
        with made(dsn) as (session, insert), ctx.transaction(session):
            insert("before")
            end_sync(session, word)
            insert("after")
            if then:
                raise then
        return "done"

    return app.job(name="work", retry=1 if then else AT_ONCE)(work_sync if sync else work)


EVERY = pytest.mark.parametrize(("made", "sync"), [*((m, False) for m in ASYNC.values()), *((m, True) for m in SYNC.values())])


@EVERY
async def test_a_commit_inside_of_the_block_is_refused_and_not_repeated(app, shop, dsn, made, sync):
    status = await run(app, ending(app, dsn, made, sync=sync, word="commit"))
    assert (status.state, status.attempt, status.output) == ("dead_letter", 1, None)
    assert "TransactionError: the handler committed in ctx.transaction() by itself" in status.error
    assert STAYS in status.error
    assert names(shop) == (["after", "before"] if made.__name__ in COMMIT_BY_THEMSELVES else ["before"])


@EVERY
async def test_a_rollback_inside_of_the_block_is_refused(app, shop, dsn, made, sync):
    status = await run(app, ending(app, dsn, made, sync=sync, word="rollback"))
    if made.__name__ in COMMIT_BY_THEMSELVES:
        assert (status.state, status.attempt, STAYS in status.error) == ("dead_letter", 1, True)
        assert names(shop) == ["after"]
    else:
        assert (status.state, status.attempt) == ("dead_letter", 3)
        assert "TransactionError: the handler rolled back the transaction of ctx.transaction() by itself" in status.error
        assert names(shop) == []


async def test_the_connection_of_tenures_own_is_watched_in_the_same_way(app, shop):
    @app.job(retry=AT_ONCE, atomic=True)
    async def in_loop(ctx: Context) -> None:
        async with ctx.db() as tx:
            await tx.execute(INSERT, ["in loop"])
            await tx.execute("commit")

    @app.job(retry=AT_ONCE, atomic=True)
    def in_thread(ctx: Context) -> None:
        with ctx.db() as tx:
            tx.execute(INSERT, ["in thread"])
            tx.execute("commit")

    for job in (in_loop, in_thread):
        status = await run(app, job)
        assert (status.state, status.attempt, STAYS in status.error) == ("dead_letter", 1, True)
    assert names(shop) == ["in loop", "in thread"]


@pytest.mark.parametrize(("made", "sync"), [(ASYNC["alchemy_async_session"], False), (SYNC["alchemy_session"], True)])
async def test_an_error_after_a_commit_of_the_handlers_own_says_what_stays(app, shop, dsn, *, made, sync, caplog):
    status = await run(app, ending(app, dsn, made, sync=sync, word="commit", then=ValueError("later")))
    assert status.state == "dead_letter"
    assert "ValueError: later" in status.error
    assert "The handler had committed the transaction of ctx.transaction() by itself before this error" in status.error
    assert "what it committed stays in the database" in caplog.text


async def test_also_after_an_error_of_postgresql_which_leaves_the_transaction_unusable(app, shop, dsn):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
            await insert("kept")
            await session.commit()
            await session.execute(text("select 1 / 0"))

    status = await run(app, work)
    assert "division by zero" in status.error
    assert "The handler had committed" in status.error
    assert names(shop) == ["kept"]


async def test_an_error_without_a_commit_says_nothing_of_that_kind(app, shop, dsn):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
            await insert("undone")
            await session.execute(text("select 1 / 0"))

    assert "The handler had committed" not in (await run(app, work)).error
    assert names(shop) == []


def async_engine(dsn, **options):
    return create_async_engine("postgresql+asyncpg://", connect_args=for_asyncpg(dsn), poolclass=NullPool, **options)


def engine(dsn, **options):
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool, **options)


async def test_an_engine_that_commits_every_statement_is_refused_before_the_handler_writes(app, shop, dsn):
    reached = []

    @app.job(max_attempts=1)
    async def in_loop(ctx: Context) -> None:
        async with AsyncSession(async_engine(dsn, isolation_level="AUTOCOMMIT")) as session, ctx.transaction(session):
            reached.append(await session.execute(NAMED, {"name": "written"}))

    @app.job(max_attempts=1)
    def in_thread(ctx: Context) -> None:
        with Session(engine(dsn, isolation_level="AUTOCOMMIT")) as session, ctx.transaction(session):
            reached.append(session.execute(NAMED, {"name": "written"}))

    for job in (in_loop, in_thread):
        status = await run(app, job)
        assert status.state == "dead_letter"
        assert (
            "TransactionError: ctx.transaction() was given a connection on which every statement commits by itself"
            in status.error
        )
    assert (reached, names(shop)) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", ["bare_dsn", "fresh_dsn"])
@EVERY
async def test_a_connection_to_another_database_is_refused_before_the_handler_writes(
    app, shop, dsn, *, made, sync, elsewhere, request
):
    other = request.getfixturevalue(elsewhere)
    reached = []

    async def work(ctx: Context) -> None:
        async with made(other) as (session, _insert), ctx.transaction(session):
            reached.append("in the block")

    def work_sync(ctx: Context) -> None:
        with made(other) as (session, _insert), ctx.transaction(session):
            reached.append("in the block")

    job = app.job(name="work", max_attempts=1)(work_sync if sync else work)
    status = await run(app, job)
    assert status.state == "dead_letter"
    assert "TransactionError: ctx.transaction() was given a connection on which this job cannot be seen" in status.error
    assert reached == []


async def test_a_run_whose_job_was_taken_away_learns_it_at_the_start_of_the_block(app, shop, dsn):
    caught = []

    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        take_over(shop.sql)
        try:
            async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
                await insert("never")
        except LeaseLost as error:
            caught.append(error.reason)
            change_state(shop.sql, "dead_letter")
            raise

    await run(app, work)
    assert (caught, names(shop)) == (["taken_by_another_worker"], [])


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_stricter_isolation_levels_are_one_transaction_like_any_other(app, shop, dsn, isolation):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> str:
        async with AsyncSession(async_engine(dsn, isolation_level=isolation)) as session, ctx.transaction(session):
            await session.execute(NAMED, {"name": "strict"})
            return ctx.set_output("done")

    status = await run(app, work)
    assert (status.state, status.output, names(shop)) == ("completed", "done", ["strict"])


async def test_savepoints_inside_of_the_block_are_part_of_it(app, shop, dsn):
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> None:
        async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
            await insert("kept")
            async with session.begin_nested():
                await insert("released")
            undone = await session.begin_nested()
            await insert("undone")
            await undone.rollback()
            await session.begin_nested()
            await insert("left open")

    assert (await run(app, work)).state == "completed"
    assert names(shop) == ["kept", "left open", "released"]


class Base(DeclarativeBase):
    pass


class Payment(Base):
    __tablename__ = "payments"
    name: Mapped[str] = mapped_column(primary_key=True)


async def test_a_session_that_writes_through_several_engines_is_refused(app, shop, dsn):
    @app.job(max_attempts=1)
    def work(ctx: Context) -> None:
        with Session(engine(dsn), binds={Payment: engine(dsn)}) as session, ctx.transaction(session):
            session.add(Payment(name="by another connection"))

    status = await run(app, work)
    assert status.state == "dead_letter"
    assert "TransactionError: this session writes through 2 connections" in status.error
    assert names(shop) == []
