"""A handler that fails after its own session has completed the job: too late to undo it, but not to report it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tenure import Cancel, Context, Fail, RunFailedAfterCompletion, Snooze, Tenure
from tests.transactions.own_sessions import alchemy_async_session, alchemy_session
from tests.transactions.test_blocks import names
from tests.waiting import until
from tests.worker.serving import serving


@pytest.fixture
async def app(dsn, shop):
    app = Tenure(dsn)
    yield app
    await app.close()


@pytest.fixture
def events(app):
    seen = []
    app.on(RunFailedAfterCompletion)(seen.append)
    return seen


def ends(app, dsn, how, run_in="loop", **options):
    """A job that completes itself in a session of its own and then ends by calling `how`."""

    async def work(ctx: Context) -> str:
        async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
            await insert("committed")
        return await how() if how.__name__ == "wait" else how()

    def work_sync(ctx: Context) -> str:
        with alchemy_session(dsn) as (session, insert), ctx.transaction(session):
            insert("committed")
        return how()

    return app.job(name="work", **{"max_attempts": 3, **options})(work if run_in == "loop" else work_sync)


def fail():
    raise ValueError("too late")


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_an_exception_is_logged_reported_and_kept_with_the_job(app, shop, dsn, events, *, caplog, run_in):
    job = ends(app, dsn, fail, run_in)
    async with serving(app):
        handle = await job.enqueue()
        await until(lambda: shop.sql("select count(*) from tenure.incidents"), is_=[(1,)])
        report = await handle.report()
        status = await handle.status()
    assert (status.state, status.attempt, status.output, names(shop)) == ("completed", 1, None, ["committed"])

    [event] = events
    assert (event.job_id, event.kind, event.fence, event.what) == (handle.id, "work", 1, "failed")
    assert "ValueError: too late" in event.error
    [record] = [record for record in caplog.records if str(handle.id) in record.message]
    assert (record.levelno, record.exc_info[0]) == (logging.ERROR, ValueError)
    assert "was completed by its own transaction, and then its handler failed; the job stays completed" in record.message

    [incident] = report.incidents
    assert (incident.what, "ValueError: too late" in incident.reason) == ("failed_after_completion", True)
    assert [attempt.outcome for attempt in report.attempts] == ["completed"]
    assert "failed after completion: ValueError: too late" in report.to_text()


def raises(outcome):
    def end():
        raise outcome

    return end


OUTCOMES = {"snoozed": Snooze("1h"), "failed": Fail("no"), "canceled": Cancel("no")}


@pytest.mark.parametrize("how", ["raised", "returned"])
@pytest.mark.parametrize("what", OUTCOMES)
async def test_an_outcome_that_comes_too_late_is_reported(app, shop, dsn, events, *, how, what):
    outcome = OUTCOMES[what]
    job = ends(app, dsn, raises(outcome) if how == "raised" else lambda: outcome)
    async with serving(app):
        await job.enqueue()
        await until(lambda: events)
    assert [event.what for event in events] == [what]
    assert shop.sql("select state from tenure.all_jobs") == [("completed",)]


async def test_a_timeout_after_the_block_is_reported(app, shop, dsn, events):
    import asyncio

    async def wait():
        await asyncio.sleep(60)

    job = ends(app, dsn, wait, timeout="200ms")
    async with serving(app):
        await job.enqueue()
        await until(lambda: events)
    assert [event.what for event in events] == ["timed_out"]
    assert "timed out" in events[0].error


async def test_a_result_that_does_not_fit_its_annotation_is_reported(app, shop, dsn, events):
    job = ends(app, dsn, lambda: 7)
    async with serving(app):
        await job.enqueue()
        await until(lambda: events)
    assert "InvalidOutput" in events[0].error


async def test_a_result_that_is_set_and_returned_in_one_step_is_part_of_the_transaction(app, shop, dsn, events):
    returned = asyncio.Event()

    @app.job
    async def work(ctx: Context) -> str:
        try:
            async with alchemy_async_session(dsn) as (session, insert), ctx.transaction(session):
                await insert("committed")
                return ctx.set_output("said once")
        finally:
            returned.set()

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "said once"
        await returned.wait()  # the result is there with the commit, before the session is closed
    same = "select count(distinct xmin::text) from (select xmin from public.payments union select xmin from tenure.history) x"
    assert (shop.sql(same), events) == ([(1,)], [])


@pytest.mark.parametrize("atomic", [True, False])
async def test_a_result_that_was_set_is_the_result_of_a_handler_that_returns_nothing(app, shop, atomic):
    @app.job(atomic=atomic)
    async def work(ctx: Context) -> str:
        ctx.set_output("set")

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "set"
