"""Outcomes that PostgreSQL cannot take now, and others that must not wait for them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import psycopg
import pytest

from tenure import Context, Fail, JobSettled, RunFailedAfterCompletion, RunLost, WorkflowContext
from tenure.model.wakeup import Wakeup
from tenure.store import workers
from tenure.store.link import Link
from tenure.worker.run import settler
from tests.store.forged_jobs import change_state, take_over
from tests.store.locks import waits_for_a_lock
from tests.waiting import until
from tests.worker.serving import serving

COUNT = 20


@pytest.fixture
def release(monkeypatch):
    """All handlers end together when it is opened, and locks are waited for only briefly."""
    monkeypatch.setattr("tenure.worker.engine.LOCK_TIMEOUT", 0.3)
    monkeypatch.setattr(settler, "LOCKED_AGAIN", 0.1)
    return asyncio.Event()


def states(database):
    return dict(database.sql("select state, count(*) from tenure.all_jobs group by 1"))


async def test_a_row_that_a_transaction_has_locked_holds_up_no_other_outcome(app, database, dsn, release):
    @app.job
    async def work(n: int) -> int:
        await release.wait()
        return n

    async with serving(app, concurrency=COUNT):
        handles = [await work.enqueue(n) for n in range(COUNT)]
        await until(lambda: states(database), is_={"running": COUNT})
        async with await psycopg.AsyncConnection.connect(dsn) as mine:
            assert await handles[0].cancel("not needed", conn=mine)
            release.set()
            await until(lambda: states(database), is_={"running": 1, "completed": COUNT - 1})
            await mine.rollback()
        await until(lambda: states(database), is_={"completed": COUNT})
    assert [await handle.result() for handle in handles] == list(range(COUNT))


async def test_an_outcome_is_written_before_the_statements_of_workflows_that_wait_for_the_connection(app, release, monkeypatch):
    sent: list[str] = []
    first_is_sent = asyncio.Event()
    run = Link._run

    async def held_up(link: Link, cursor: Any, query: Any) -> Any:
        if query.name in ("workflows/start_children", "jobs/finish_jobs"):
            sent.append(query.name)
            if len(sent) == 1:
                await first_is_sent.wait()
        return await run(link, cursor, query)

    monkeypatch.setattr(Link, "_run", held_up)

    @app.job
    async def work() -> None:
        await release.wait()

    @app.workflow
    async def parent(ctx: WorkflowContext) -> None:
        await asyncio.gather(*(ctx.start(work) for _ in range(COUNT)))

    async with serving(app, concurrency=COUNT):
        handle = await work.enqueue()
        await parent.enqueue()
        await until(lambda: sent)
        release.set()
        for _ in range(50):  # turns in which the handler ends and all of them ask for the connection
            await asyncio.sleep(0)
        first_is_sent.set()
        await handle.result("20s")
    assert sent[:2] == ["workflows/start_children", "jobs/finish_jobs"]


async def test_a_lost_run_whose_neighbour_is_locked_is_not_reported_as_settled(app, database, dsn, release):
    seen: list[JobSettled | RunLost] = []
    app.on(JobSettled, RunLost)(seen.append)

    @app.job(max_attempts=1)
    async def work() -> None:
        await release.wait()
        raise ValueError("no")

    async with serving(app, concurrency=2):
        locked, lost = await work.enqueue(), await work.enqueue()
        await until(lambda: states(database), is_={"running": 2})
        take_over(database.sql, lost.id)
        async with await psycopg.AsyncConnection.connect(dsn) as mine:
            await locked.cancel("not needed", conn=mine)
            release.set()
            await until(lambda: [event.job_id for event in seen], is_=[lost.id])
            await mine.rollback()
        await until(lambda: [(type(event), event.job_id) for event in seen], is_=[(RunLost, lost.id), (JobSettled, locked.id)])
    app.events.__init__()


async def test_of_two_runs_of_a_job_that_end_together_only_the_holder_is_reported_as_settled(app, database, dsn, release):
    """The worker lost the first run's claim without knowing it, and claimed the job again."""
    seen: list[JobSettled | RunLost] = []
    app.on(JobSettled, RunLost)(seen.append)

    @app.job
    def work(ctx: Context) -> int:
        ended.wait(30)
        return ctx.fence

    ended = threading.Event()
    async with serving(app, concurrency=2) as worker:
        handle = await work.enqueue()
        await until(lambda: states(database), is_={"running": 1})
        change_state(database.sql, "pending")
        worker._engine.on_wakeup(Wakeup.missed())
        await until(lambda: database.sql("select fence from tenure.jobs where state = 'running'"), is_=[(2,)])
        await until(lambda: worker._engine.running == 2)
        ended.set()
        assert await handle.result("20s") == 2
        await until(lambda: {(type(event), event.fence) for event in seen}, is_={(RunLost, 1), (JobSettled, 2)})
    app.events.__init__()


@pytest.mark.parametrize("ending", ["completed", "failed"])
async def test_a_run_whose_claim_a_person_removed_is_lost_and_its_job_runs_again(app, database, release, ending):
    seen: list[JobSettled | RunLost] = []
    app.on(JobSettled, RunLost)(seen.append)

    @app.job(max_attempts=1)
    async def work(ctx: Context) -> str:
        await release.wait()
        return "done" if ending == "completed" else Fail("never")

    async with serving(app) as worker:
        await worker._leader.stop()  # its reaper looks for such jobs in its first round
        await work.enqueue()
        await until(lambda: states(database), is_={"running": 1})
        database.sql("delete from tenure.claims")
        release.set()
        await until(lambda: seen)
        assert states(database) == {"running": 1}
        # As the reaper does.
        database.run(workers.condemn_unknown(database.term("a duty of the test")))
        assert database.return_jobs()[:2] == (1, 0)
        worker._engine.on_wakeup(Wakeup.missed())
        await until(lambda: states(database), is_={ending: 1})
        await until(lambda: [(type(event), event.fence) for event in seen], is_=[(RunLost, 1), (JobSettled, 2)])
    assert database.sql("select attempt, crashes from tenure.history") == [(1, 1)]
    app.events.__init__()


async def test_a_stop_waits_for_a_row_that_is_locked_briefly(app, database, dsn, release):
    @app.job
    async def work() -> str:
        await release.wait()
        return "done"

    worker = app.worker(grace=10)
    await worker.start()
    handle = await work.enqueue()
    await until(lambda: states(database), is_={"running": 1})
    async with await psycopg.AsyncConnection.connect(dsn) as mine:
        await handle.cancel("not needed", conn=mine)
        release.set()
        stopping = asyncio.create_task(worker.stop())
        await until(lambda: worker._engine._slots.settler.unwritten == 1 and worker._engine._slots.settler.backlog == 0)
        await mine.rollback()
    await stopping
    assert states(database) == {"completed": 1}


async def test_deadlines_count_while_postgresql_does_not_answer(app, database, dsn, release):
    @app.job(timeout="0.6s", max_attempts=1)
    async def endless() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            release.set()

    async with serving(app):
        await endless.enqueue()
        await until(lambda: states(database), is_={"running": 1})
        async with await psycopg.AsyncConnection.connect(dsn) as administrator:
            await administrator.execute("lock table tenure.jobs in access exclusive mode")
            await asyncio.wait_for(release.wait(), 10)
        await until(lambda: states(database), is_={"dead_letter": 1})


@pytest.mark.parametrize("sqlstate", ["08001", "55P03", "40001", "28P01"])
async def test_a_trigger_that_fails_like_an_outage_holds_up_no_other_outcome(app, database, monkeypatch, sqlstate):
    monkeypatch.setattr(settler, "PARKED", 0.5)
    database.sql(
        f"""create function public.audit() returns trigger language plpgsql as $$
            begin
                if new.kind = 'bad' then raise exception 'the audit server is away' using errcode = '{sqlstate}'; end if;
                return new;
            end $$"""
    )
    database.sql("create trigger audit before insert on tenure.history for each row execute function public.audit()")
    try:

        @app.job
        async def good(n: int) -> int:
            return n

        @app.job
        async def bad() -> str:
            return "recorded in the end"

        async with serving(app, concurrency=COUNT):
            unlucky = await bad.enqueue()
            handles = [await good.enqueue(n) for n in range(COUNT)]
            assert [await handle.result("30s") for handle in handles] == list(range(COUNT))
            assert (await unlucky.status()).state == "running"
            # Dropping the trigger would lock the partitions in another order than the worker does.
            database.sql("create or replace function public.audit() returns trigger language plpgsql as 'begin return new; end'")
            assert await unlucky.result("30s") == "recorded in the end"
    finally:
        database.sql("drop trigger audit on tenure.history")
        database.sql("drop function public.audit()")


async def test_outcomes_that_cannot_be_written_stop_further_claims_and_are_reported_at_the_stop(app, database, dsn, caplog):
    ran = 0

    @app.job
    async def work() -> None:
        nonlocal ran
        ran += 1

    database.sql("create function public.deny() returns trigger language plpgsql as $$ begin raise connection_exception; end $$")
    database.sql("create trigger deny before insert on tenure.history for each row execute function public.deny()")
    try:
        worker = app.worker(concurrency=2, grace=0)
        await worker.start()
        for _ in range(60):
            await work.enqueue()
        parked = worker._engine._slots.settler
        await until(lambda: parked.unwritten >= 8 and worker._engine._slots.count == 0)
        for _ in range(20):
            await work.enqueue()
        await until(lambda: parked.backlog, is_=0)
        assert ran <= 4 * 2 + 2 * 2
        await worker.stop()
        [told] = [record for record in caplog.records if "could not be written before shutdown" in record.message]
        assert told.jobs == ran
    finally:
        database.sql("drop trigger deny on tenure.history")
        database.sql("drop function public.deny()")


async def test_a_handler_that_cleans_up_slowly_at_a_stop_is_not_reported_as_completed(app, database, caplog):
    seen = []
    app.on(RunFailedAfterCompletion)(seen.append)
    tasks: list[asyncio.Task] = []

    @app.job
    async def slow() -> None:
        tasks.append(asyncio.current_task())
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.5)

    async with serving(app):
        await slow.enqueue()
        await until(lambda: tasks)
    await until(tasks[0].done)
    await asyncio.sleep(0)  # until the callbacks of the task have been called
    assert seen == []
    assert "was completed by its own transaction" not in caplog.text
    assert states(database) == {"pending": 1}


async def test_behind_a_pooler_a_locked_row_holds_up_no_other_outcome(app, database, dsn, release, monkeypatch):
    """There a session has no lock timeout of ours: the statement is canceled."""
    monkeypatch.setattr(settler, "POOLED_LOCK_TIMEOUT", 0.3)
    app.configure(pooled=True)

    @app.job
    async def work(n: int) -> int:
        await release.wait()
        return n

    async with serving(app, concurrency=COUNT):
        handles = [await work.enqueue(n) for n in range(COUNT)]
        await until(lambda: states(database), is_={"running": COUNT})
        async with await psycopg.AsyncConnection.connect(dsn) as mine:
            assert await handles[0].cancel("not needed", conn=mine)
            release.set()
            await until(lambda: states(database), is_={"running": 1, "completed": COUNT - 1})
            await mine.rollback()
        await until(lambda: states(database), is_={"completed": COUNT})


async def test_behind_a_pooler_every_statement_on_the_connection_that_settles_has_a_time_limit(
    app, database, other, release, monkeypatch
):
    """A table is locked that settling does not need, but a log line of the same run does."""
    monkeypatch.setattr("tenure.worker.engine.POOLED_LIMIT", 0.3)
    app.configure(pooled=True)

    @app.job
    async def work(ctx: Context) -> None:
        ctx.log.info("it runs")
        await release.wait()

    @app.job
    async def other_work() -> None: ...

    async with serving(app, concurrency=2):
        with other.connection.transaction():
            other.sql("lock table tenure.logs in share mode")
            await work.enqueue()
            await waits_for_a_lock(database)
            await (await other_work.enqueue()).result("30s")
        release.set()
        await until(lambda: states(database), is_={"completed": 2})
