"""Time travel: the clock of the test database is set ahead, and everything in it goes by that clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tenure import ConfigError, Tenure, store
from tenure.testing import assert_enqueued, drain, enqueued, travel
from tests.testing.shop import DONE, call_api, charge, leased, send_mail, wait_for


@pytest.fixture
def at_noon(tenure_app):
    """For tests that travel past less than a day: the shop's schedule at three must not be due on their way."""
    now = travel(tenure_app)
    travel(tenure_app, to=now.replace(hour=12, minute=0, second=0) + timedelta(days=1))


@pytest.mark.usefixtures("at_noon")
async def test_a_delay(tenure_app):
    await send_mail.using(delay="1d").enqueue("ann")
    travel(tenure_app, hours=23)
    assert await drain(tenure_app) == []
    travel(tenure_app, hours=2)
    [run] = await drain(tenure_app)
    assert run.output == "sent to ann"


@pytest.mark.usefixtures("at_noon")
async def test_the_count_for_autoscalers_goes_by_that_clock(tenure_app, tenure_dsn):
    await send_mail.using(delay="1d").enqueue("ann")

    def backlog() -> tuple[int, int]:
        with psycopg.connect(tenure_dsn) as connection:
            return connection.execute("select tenure.backlog(), tenure.backlog('mail')").fetchone()

    assert backlog() == (0, 0)
    travel(tenure_app, hours=25)
    assert backlog() == (1, 1)


@pytest.mark.usefixtures("at_noon")
async def test_a_back_off(tenure_app):
    await charge.enqueue(7, fails=2)
    await drain(tenure_app, retries=False)
    travel(tenure_app, minutes=59)
    assert await drain(tenure_app, retries=False) == []
    travel(tenure_app, minutes=2)
    [second] = await drain(tenure_app, retries=False)
    assert second.attempt == 2


@pytest.mark.usefixtures("at_noon")
async def test_a_snooze(tenure_app):
    await wait_for.enqueue("noon")
    await drain(tenure_app)
    travel(tenure_app, hours=1)
    [run] = await drain(tenure_app)
    assert (run.attempt, run.output) == (1, "noon")


@pytest.mark.usefixtures("at_noon")
async def test_a_rate(tenure_app):
    for n in range(5):
        await call_api.enqueue(n)
    assert len(await drain(tenure_app)) == 2
    travel(tenure_app, minutes=61)
    assert len(await drain(tenure_app)) == 2


async def test_the_window_of_a_key(tenure_app):
    first = await send_mail.using(key="k", key_for="1d").enqueue("ann")
    await drain(tenure_app)
    assert (await send_mail.using(key="k", key_for="1d").enqueue("ann")).id == first.id
    travel(tenure_app, hours=25)
    assert not (await send_mail.using(key="k", key_for="1d").enqueue("ann")).existed
    assert_enqueued(send_mail, times=2)


async def test_a_schedule_runs_on_time(tenure_app):
    assert await drain(tenure_app) == []  # the schedule is declared, and its next time planned
    at = travel(tenure_app, to=next_at_three(travel(tenure_app)))
    [run] = await drain(tenure_app)
    assert run.kind == "nightly"
    assert run.output == at.replace(hour=3, minute=0, second=0, microsecond=0)
    assert [("nightly", run.output, False)] == DONE
    travel(tenure_app, days=1)
    assert len(await drain(tenure_app)) == 1


def next_at_three(now: datetime) -> datetime:
    today = now.replace(hour=3, minute=0, second=1, microsecond=0)
    return today if today > now else today + timedelta(days=1)


async def test_the_lease_of_a_worker_that_is_gone(tenure_app, sql_of):
    """A worker on another machine held the job and was never heard of again."""
    handle = await leased.enqueue()
    async with tenure_app.running() as worker:
        await handle.result(timeout="20s")
        assert worker.worker_id is not None
    lost = await leased.enqueue()
    sql_of("""insert into tenure.workers
                     (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, expires_at)
              select gen_random_uuid(), gen_random_uuid(), 'gone', 1, '[]', '[]', '[]', 1, '0',
                     tenure_clock.now() + interval '15 s'""")
    sql_of(
        "insert into tenure.claims (id, worker_id, job_ids) select gen_random_uuid(), w.id, %s from tenure.workers w", [lost.id]
    )
    sql_of("""update tenure.jobs j set state = 'running', claim_id = c.id, fence = 1, attempt = 1
                from tenure.claims c where j.id = any (c.job_ids)""")
    assert await drain(tenure_app) == []
    travel(tenure_app, seconds=20)
    [run] = await drain(tenure_app)
    assert (run.job_id, run.output, run.attempt) == (lost.id, 2, 1)
    assert (await lost.status()).crashes == 1


async def test_times_that_are_stored_and_shown_go_by_the_same_clock(tenure_app):
    now = travel(tenure_app, days=30)
    handle = await send_mail.enqueue("ann")
    await drain(tenure_app)
    status = await handle.status()
    assert status.enqueued_at >= now
    assert status.finished_at >= status.started_at >= now
    assert now - datetime.now(UTC) > timedelta(days=29)


async def test_the_tables_of_the_caller_are_made_where_they_always_were(tenure_app, sql_of):
    sql_of("create table toolkit_orders (id integer, at timestamptz default now())")
    try:
        travel(tenure_app, days=10)
        sql_of("insert into toolkit_orders values (1)")
        found = sql_of("""
            select c.relnamespace::regnamespace::text, o.at - current_timestamp > interval '9 days'
              from toolkit_orders o, pg_class c where c.relname = 'toolkit_orders'""")
        assert found == [("public", True)]
    finally:
        sql_of("drop table toolkit_orders")


async def test_the_next_test_begins_at_the_real_time(tenure_app):
    assert abs(travel(tenure_app) - datetime.now(UTC)) < timedelta(hours=1)
    assert await enqueued(tenure_app) == []


def test_not_back(tenure_app):
    with pytest.raises(ConfigError, match=r"cannot go back by 1:00:00.*Each test begins at the present"):
        travel(tenure_app, hours=-1)
    with pytest.raises(ConfigError, match="has no time zone: give one"):
        travel(tenure_app, to=datetime(2030, 1, 1))  # noqa: DTZ001


def test_never_in_a_database_that_is_not_for_tests():
    with pytest.raises(ConfigError, match="database 'shop' may contain real jobs"):
        travel(Tenure("postgresql://localhost/shop"), hours=1)


@pytest.fixture
def sql_of(tenure_dsn):
    def run(statement, values=None):
        with psycopg.connect(tenure_dsn, autocommit=True) as connection:
            cursor = connection.execute(statement, None if values is None else [values])
            return cursor.fetchall() if cursor.description else []

    return run


def test_no_statement_reads_the_time_from_a_clock_that_is_not_replaced():
    other = re.compile(r"\b(transaction_timestamp|timeofday|current_(timestamp|date|time)|localtime(stamp)?)\b", re.IGNORECASE)
    files = [file for file in Path(store.__file__).parent.rglob("*.sql") if file.parent.name != "test_databases"]
    assert len(files) > 200
    assert [file.name for file in files if other.search(file.read_text("utf-8"))] == []
