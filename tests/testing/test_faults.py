"""Failures that a test makes happen."""

from __future__ import annotations

import psycopg
import pytest

from tenure import Context
from tenure.testing import crash_after, drain, lose_lease
from tests.testing.shop import DONE, charge, leased, send_mail


async def test_a_worker_that_dies_after_the_handler(tenure_app):
    handle = await send_mail.enqueue("ann")
    with crash_after(send_mail):
        crashed, completed = await drain(tenure_app)
    assert (crashed.what, completed.what, completed.attempt) == ("crashed", "completed", 1)
    assert DONE == [("mail", "ann"), ("mail", "ann")]
    status = await handle.status()
    assert (status.crashes, status.attempt) == (1, 1)


async def test_a_job_that_crashes_too_often_is_quarantined(tenure_app):
    handle = await send_mail.enqueue("ann")
    with crash_after(send_mail, times=3):
        await drain(tenure_app)
    assert (await handle.status()).state == "dead_letter"


async def test_a_transaction_is_rolled_back_by_the_crash_and_written_once(tenure_app, tenure_dsn):
    @tenure_app.job(name="writes_once")
    async def writes_once(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("insert into fault_rows values (%s)", [ctx.fence])

    with psycopg.connect(tenure_dsn, autocommit=True) as connection:
        connection.execute("create table fault_rows (fence integer)")
        try:
            await writes_once.enqueue()
            with crash_after(writes_once):
                await drain(tenure_app)
            assert connection.execute("select fence from fault_rows").fetchall() == [(2,)]
        finally:
            connection.execute("drop table fault_rows")
            del tenure_app.kinds._kinds["writes_once"]


async def test_a_job_whose_lease_is_lost_runs_again(tenure_app):
    handle = await leased.enqueue()
    with lose_lease(leased):
        runs = await drain(tenure_app)
    assert [(run.what, run.output) for run in runs] == [("completed", 2)]
    assert DONE[-1] == ("leased", 2)
    status = await handle.status()
    assert (status.crashes, status.attempt, status.output) == (1, 1, 2)


async def test_a_fault_that_did_not_happen_fails_the_test(tenure_app):
    with pytest.raises(AssertionError, match="charge ran 0 of 1 times"), crash_after(charge):
        await drain(tenure_app)
