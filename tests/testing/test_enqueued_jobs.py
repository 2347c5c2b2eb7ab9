"""`assert_enqueued` and `enqueued`: what the code under test enqueued, committed or not."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tenure import ConfigError
from tenure.testing import assert_enqueued, drain, enqueued, enqueued_sync
from tests.docs.page_runner import as_url
from tests.testing.shop import charge, import_rows, send_mail

pytestmark = pytest.mark.usefixtures("tenure_app")


async def test_by_arguments_and_times():
    await send_mail.enqueue("ann")
    await send_mail.enqueue("ann", text="again")
    await send_mail.enqueue("bob")
    assert_enqueued(send_mail)
    assert_enqueued(send_mail, times=3)
    assert_enqueued(send_mail, args={"to": "ann"}, times=2)
    assert_enqueued(send_mail, ("ann", "again"), times=1)
    assert_enqueued(send_mail, args={"to": "eve"}, times=0)
    assert_enqueued(charge, times=0)


async def test_a_failure_lists_what_was_enqueued_instead():
    await send_mail.enqueue("ann")
    with pytest.raises(AssertionError) as failed:
        assert_enqueued(send_mail, args={"to": "bob"})
    assert str(failed.value) == (
        "send_mail was enqueued 0 times with args={'to': 'bob'}, expected at least once. All that were enqueued:\n"
        "  args={'to': 'ann'} queue='mail' key=None state='pending'"
    )
    with pytest.raises(AssertionError, match="expected 2 times"):
        assert_enqueued(send_mail, times=2)
    with pytest.raises(AssertionError, match="None was enqueued: if it was in a transaction, give it as conn="):
        assert_enqueued(charge)


async def test_by_queue_and_key():
    await charge.enqueue(7)
    assert_enqueued(charge, queue="payments", key="7")
    assert_enqueued(charge, queue="mail", times=0)
    assert_enqueued(charge, key="8", times=0)


async def test_a_job_that_has_run_was_enqueued_too(tenure_app):
    await charge.enqueue(7)
    await drain(tenure_app)
    assert_enqueued(charge, args={"order_id": 7}, times=1)
    assert [(job.kind, job.state) for job in await enqueued(tenure_app)] == [("charge", "completed"), ("send_mail", "completed")]


async def test_what_is_known_of_a_job():
    handle = await import_rows.using(meta={"by": "test"}, auth="ann", priority="high", delay="1h").enqueue([1, 2])
    [job] = enqueued_sync(import_rows)
    assert (job.id, job.args, job.meta, job.auth, job.priority, job.state) == (
        handle.id, {"rows": [1, 2]}, {"by": "test"}, "ann", 75, "scheduled",
    )  # fmt: skip
    assert job.run_at is not None


def test_in_an_uncommitted_transaction_of_psycopg(tenure_dsn):
    with psycopg.connect(tenure_dsn) as connection:
        send_mail.using(conn=connection).enqueue_sync("ann")
        assert_enqueued(send_mail, args={"to": "ann"}, times=1, conn=connection)
        assert_enqueued(send_mail, times=0)
        connection.rollback()
        assert_enqueued(send_mail, times=0, conn=connection)


def test_in_an_uncommitted_session_of_sqlalchemy(tenure_dsn):
    engine = create_engine(as_url(tenure_dsn).replace("postgresql:", "postgresql+psycopg:", 1))
    with Session(engine) as session:
        send_mail.using(conn=session).enqueue_sync("ann")
        assert_enqueued(send_mail, times=1, conn=session)
    assert_enqueued(send_mail, times=0)
    engine.dispose()


async def test_in_an_uncommitted_async_session(tenure_dsn):
    engine = create_async_engine(as_url(tenure_dsn).replace("postgresql:", "postgresql+psycopg:", 1))
    async with AsyncSession(engine) as session:
        await send_mail.using(conn=session).enqueue("ann")
        await session.run_sync(lambda sync: assert_enqueued(send_mail, times=1, conn=sync))
        assert [job.args["to"] for job in await enqueued(send_mail, conn=session)] == ["ann"]
        with pytest.raises(ConfigError, match="can only be used with await"):
            assert_enqueued(send_mail, conn=session)
    await engine.dispose()
