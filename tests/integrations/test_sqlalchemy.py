"""Jobs that are enqueued when a session of another database commits, and Alembic beside our schema."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tenure import StoreUnavailable, Tenure
from tenure.integrations.sqlalchemy import enqueue_after_commit
from tenure.testing import assert_enqueued, enqueued_sync
from tests.docs.workshop import as_url


@pytest.fixture
def work(app):
    @app.job
    async def work(n: int) -> None: ...

    return work


@pytest.fixture
def session(dsn):
    engine = create_engine(as_url(dsn).replace("postgresql:", "postgresql+psycopg:", 1))
    with Session(engine) as session:
        session.execute(text("select 1"))
        yield session
    engine.dispose()


def numbers(work):
    return [job.args["n"] for job in enqueued_sync(work)]


def test_after_the_commit(app, work, session):
    enqueue_after_commit(app, session, work.call(1), work.call(2))
    assert_enqueued(work, times=0)
    session.commit()
    assert numbers(work) == [1, 2]
    session.execute(text("select 1"))
    session.commit()
    assert numbers(work) == [1, 2]


def test_not_after_a_rollback(app, work, session):
    enqueue_after_commit(app, session, work.call(1))
    session.rollback()
    enqueue_after_commit(app, session, work.call(2))
    session.commit()
    assert numbers(work) == [2]


def test_a_savepoint_takes_its_own_jobs_with_it(app, work, session):
    enqueue_after_commit(app, session, work.call(1))
    with pytest.raises(ValueError, match="no"), session.begin_nested():
        enqueue_after_commit(app, session, work.call(2))
        raise ValueError("no")
    with session.begin_nested():
        enqueue_after_commit(app, session, work.call(3))
    session.commit()
    assert numbers(work) == [1, 3]


async def test_an_async_session(app, work, dsn):
    engine = create_async_engine(as_url(dsn).replace("postgresql:", "postgresql+psycopg:", 1))
    async with AsyncSession(engine) as session:
        await session.execute(text("select 1"))
        enqueue_after_commit(app, session, work.call(1))
        await session.rollback()
        enqueue_after_commit(app, session, work.call(2))
        await session.commit()
    assert numbers(work) == [2]
    await engine.dispose()


def test_a_failing_enqueue_is_not_hidden(session):
    away = Tenure("postgresql://127.0.0.1:1/nowhere", client_timeout_seconds=1)

    @away.job
    async def work() -> None: ...

    enqueue_after_commit(away, session, work.call())
    with pytest.raises(StoreUnavailable):
        session.commit()
