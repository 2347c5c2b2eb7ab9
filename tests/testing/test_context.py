"""`context()`: a handler called as a function."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from tenure import Aborted, ConfigError, Context
from tenure.testing import context
from tests.docs.page_runner import as_url
from tests.testing.shop import import_rows, nightly


def test_what_a_handler_reports_is_kept():
    ctx = context()
    assert import_rows(ctx, [3, 4]) == 7
    assert ctx.reports == [(50, "row 3"), (100, "row 4")]
    assert ctx.lines == [("info", "imported", {"rows": 2})]


def test_what_a_handler_sees():
    ctx = context(
        import_rows, attempt=3, max_attempts=3, auth={"user": 1}, meta={"a": 1}, input={"rows": []}, queue="q", schedule="s"
    )
    assert isinstance(ctx, Context)
    assert (ctx.kind, ctx.attempt, ctx.is_retry, ctx.is_last_attempt, ctx.fence) == ("import_rows", 3, True, True, 3)
    assert (ctx.auth, ctx.meta, ctx.input, ctx.queue, ctx.schedule) == ({"user": 1}, {"a": 1}, {"rows": []}, "q", "s")


async def test_a_planned_time():
    at = datetime(2030, 1, 1, 3, tzinfo=UTC)
    assert await nightly(context(scheduled_for=at)) == at


def test_the_signal():
    ctx = context()
    ctx.heartbeat()
    assert ctx.heartbeats == 1
    ctx.abort("timeout")
    assert ctx.signal.reason == "timeout"
    with pytest.raises(Aborted):
        ctx.heartbeat()


def test_without_a_database():
    with pytest.raises(ConfigError, match="give it a job of your app"), context().transaction():
        pass


@pytest.fixture
def table(tenure_app, tenure_dsn):
    with psycopg.connect(tenure_dsn, autocommit=True) as connection:
        connection.execute("create table context_rows (id integer)")
        yield lambda: connection.execute("select id from context_rows order by id").fetchall()
        connection.execute("drop table context_rows")


async def test_a_transaction_of_its_own(table):
    async with context(import_rows).transaction() as connection:
        await connection.execute("insert into context_rows values (1)")
    with context(import_rows).transaction() as connection:
        connection.execute("insert into context_rows values (2)")
    with pytest.raises(ValueError, match="undone"):
        async with context(import_rows).transaction() as connection:
            await connection.execute("insert into context_rows values (3)")
            raise ValueError("undone")
    assert table() == [(1,), (2,)]


def test_a_session_of_the_callers(table, tenure_dsn):
    engine = create_engine(as_url(tenure_dsn).replace("postgresql:", "postgresql+psycopg:", 1))
    with Session(engine) as session, context().transaction(session):
        session.execute(text("insert into context_rows values (1)"))
    with context().transaction(sessionmaker(engine)) as session:
        session.execute(text("insert into context_rows values (2)"))
    assert table() == [(1,), (2,)]
    engine.dispose()
