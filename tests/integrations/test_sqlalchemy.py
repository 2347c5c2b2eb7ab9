"""Jobs that are enqueued when a session of another database commits, and Alembic beside our schema."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tenure import ConfigError, StoreUnavailable, Tenure
from tenure.integrations.sqlalchemy import database_url, enqueue_after_commit
from tenure.testing import assert_enqueued, enqueued_sync
from tests.docs.page_runner import as_url


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


def test_an_engine_for_the_database_of_the_app(app, dsn, sql):
    [(expected,)] = sql("select current_database()")
    for url in (database_url(app), database_url(Tenure(as_url(dsn))), database_url(app).set(drivername="postgresql+psycopg2")):
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(text("select current_database()")).scalar() == expected
        engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_an_async_engine_for_the_database_of_the_app(app, sql, driver):
    [(expected,)] = sql("select current_database()")
    engine = create_async_engine(database_url(app).set(drivername=f"postgresql+{driver}"))
    async with engine.connect() as connection:
        assert (await connection.execute(text("select current_database()"))).scalar() == expected
    await engine.dispose()


@pytest.mark.parametrize(
    ("dsn", "url"),
    [
        ("postgresql://me:p%40ss@db:5433/shop?sslmode=require", "postgresql+psycopg://me:p%40ss@db:5433/shop?sslmode=require"),
        ("postgres://me@db/shop", "postgresql+psycopg://me@db/shop"),
        ("postgresql+asyncpg://me@db/shop", "postgresql+psycopg://me@db/shop"),
        ("host=/run/pg port=5433 dbname=shop", "postgresql+psycopg:///shop?host=%2Frun%2Fpg&port=5433"),
        ("host=a,b port=1,2 user=me", "postgresql+psycopg://me@?host=a%2Cb&port=1%2C2"),
        ("", "postgresql+psycopg://"),
    ],
)
def test_the_url_of_a_database(dsn, url):
    assert database_url(Tenure(dsn)).render_as_string(hide_password=False) == url


def test_no_url_without_a_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENURE_DSN", raising=False)
    with pytest.raises(ConfigError, match="no database is set"):
        database_url(Tenure())


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
