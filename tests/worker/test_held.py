"""No job is held by a worker that does not run it: what PostgreSQL has and the worker does not know is requeued."""

from __future__ import annotations

import asyncio
import json
import logging
from uuid import uuid4

import pytest

from tenure import JobSettled, JobStarted, Rate, Retry
from tenure.worker.claim import held_jobs as held
from tests.store.database import Database
from tests.store.forged_jobs import forge_job
from tests.store.locks import waits_for_a_lock
from tests.waiting import until
from tests.worker.serving import serving

SESSIONS = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
     where datname = current_database() and application_name like 'tenure%%' and pid <> pg_backend_pid()"""

# What a replica has that got the claim, and not the settlement.
FORGOTTEN = """
    with gone as (delete from tenure.history where id = %s returning *),
    claim as (
        insert into tenure.claims (id, worker_id, at, job_ids)
        select claim_id, worker_id, started_at, array[id] from gone
        on conflict (id) do nothing)
    insert into tenure.jobs (id, claim_id, position, fence, attempt, state, kind, queue, input)
    select id, claim_id, nextval('tenure.job_position'), fence, attempt, 'running', kind, queue, input from gone"""


@pytest.fixture
async def app(app):
    yield app
    await app.close()


def completed(database, count):
    return until(lambda: database.sql("select count(*) from tenure.history"), is_=[(count,)])


async def test_after_a_failover_that_lost_the_settlement_the_job_runs_again(app, database):
    ran = []

    @app.job
    async def work() -> None:
        ran.append(1)

    async with serving(app):
        handle = await work.enqueue()
        await completed(database, 1)
        database.sql(FORGOTTEN, handle.id)
        database.sql(SESSIONS)
        await completed(database, 1)
        assert database.sql("select attempt, fence, crashes from tenure.history") == [(1, 2, 0)]
    assert len(ran) == 2


async def test_a_worker_with_jobs_of_its_own_requeues_only_the_unknown_one(app, database, monkeypatch):
    monkeypatch.setattr(held, "BUSY_EVERY", 0.05)
    released = asyncio.Event()
    ran = []

    @app.job
    async def work(n: int) -> None:
        ran.append(n)
        if n == 0:
            await released.wait()

    async with serving(app):
        await work.enqueue(0)
        await until(lambda: ran == [0])
        handle = await work.enqueue(1)
        await completed(database, 1)
        database.sql(FORGOTTEN, handle.id)
        await completed(database, 1)
        await until(lambda: ran == [0, 1, 1])
        released.set()
        await completed(database, 2)
    assert sorted(database.sql("select input ->> 'n', fence from tenure.history")) == [("0", 1), ("1", 2)]


async def test_jobs_that_are_being_claimed_are_not_taken_for_unknown(app, database, other, monkeypatch):
    """The comparison comes again and again while a claim has written its jobs and is not answered yet."""
    monkeypatch.setattr(held, "BUSY_EVERY", 0.01)
    monkeypatch.setattr(held, "IDLE_EVERY", 0.01)
    ran = []

    @app.job
    async def work(n: int) -> None:
        ran.append(n)

    async with serving(app, concurrency=5):
        await app.enqueue_many(work.call(n) for n in range(300))
        await completed(database, 300)
    assert sorted(ran) == list(range(300))
    assert database.sql("select distinct fence from tenure.history") == [(1,)]


async def test_a_limited_claim_that_fails_does_not_drop_what_the_other_claim_took(app, fresh_dsn, monkeypatch):
    """It fails as a whole, not because of single jobs: a table that it reads is gone."""
    app.configure(dsn=fresh_dsn)

    @app.job(rate=Rate(5, "1s"))
    async def limited() -> None: ...

    @app.job
    async def free(n: int) -> None: ...

    with Database(fresh_dsn) as database:
        async with serving(app, concurrency=20) as worker:
            await free.enqueue(0)
            await completed(database, 1)
            database.sql("alter table tenure.starts rename to starts_gone")
            await limited.enqueue()
            for n in range(1, 40):
                await free.enqueue(n)
            await completed(database, 40)
            await until(lambda: worker._engine.running == 0)
            database.sql("alter table tenure.starts_gone rename to starts")
            await completed(database, 41)
        assert database.sql("select distinct attempt, crashes, fence from tenure.history") == [(1, 0, 1)], (
            "each ran at its first claim"
        )
        await app.close()


async def test_a_claim_that_is_still_under_way_when_the_worker_stops_costs_nothing(app, database, other, caplog):
    @app.job
    async def work() -> None: ...

    events = []
    app.on(JobStarted, JobSettled)(events.append)
    worker = app.worker()
    await worker.start()
    await (await work.enqueue()).result("30s")
    with other.connection.transaction():
        other.sql("lock table tenure.tallies in share mode")  # a claim writes there; enqueueing is done below, by hand
        database.sql(
            "insert into tenure.jobs (id, state, kind, position) values (%s, 'pending', 'work', nextval('tenure.job_position'))",
            uuid4(),
        )
        await waits_for_a_lock(database, "tenure claim")
        stopping = asyncio.create_task(worker.stop())
        await until(lambda: worker._engine._stopping)
    await stopping

    assert database.sql("select state, attempt, crashes from tenure.jobs") == [("pending", 0, 0)]
    assert database.sql("select count(*) from tenure.workers") == [(0,)]
    assert [type(event) for event in events] == [JobStarted, JobSettled], "the second job never started"
    assert [
        record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING and record.module != "doctor"
    ] == []


async def test_a_handler_that_cancels_itself_fails_its_attempt_and_frees_its_slot(app, database):
    """A home-made time limit: `loop.call_later(seconds, task.cancel)`."""

    @app.job(retry=Retry(max_attempts=1), timeout=None)
    async def homemade() -> None:
        asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)
        await asyncio.sleep(3600)

    async with serving(app, concurrency=1) as worker:
        handles = [await homemade.enqueue() for _ in range(3)]
        await until(lambda: database.sql("select count(*) from tenure.jobs where state = 'dead_letter'"), is_=[(3,)])
        assert worker._engine.running == 0
    assert "CancelledError" in ((await handles[0].status()).error or "")


async def test_a_run_that_is_canceled_before_its_first_step_frees_its_slot(app, database):
    @app.job(retry=Retry(max_attempts=1))
    async def work() -> None: ...

    @app.on(JobStarted)
    def cancel_at_once(_: JobStarted) -> None:
        for task in asyncio.all_tasks():
            if task.get_coro().__name__ == "_execute":
                task.cancel()

    async with serving(app, concurrency=1) as worker:
        for _ in range(2):
            await work.enqueue()
        await until(lambda: database.sql("select count(*) from tenure.jobs where state = 'dead_letter'"), is_=[(2,)])
        assert worker._engine.running == 0


async def test_after_a_job_has_ended_the_next_one_waits_for_the_delay(app, database):
    app.configure(workers_next_job_delay_ms=300)
    moments: list[float] = []

    @app.job
    async def work() -> None:
        moments.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.05)
        moments.append(asyncio.get_running_loop().time())

    await app.enqueue_many(work.call() for _ in range(4))
    async with serving(app, concurrency=1):
        await completed(database, 4)
    ends, starts = moments[1:-1:2], moments[2::2]
    assert all(start - end >= 0.29 for end, start in zip(ends, starts, strict=True))


REFUSE_100 = """
    create or replace function public.refuse() returns trigger language plpgsql as
        'begin raise exception ''not today'' using errcode = ''AU001''; end';
    create trigger refuse before update on tenure.jobs for each row
        when (new.state = 'pending' and new.input ->> 'n' = '100') execute function public.refuse()"""


async def test_an_unknown_job_that_cannot_be_requeued_holds_up_no_other_and_is_reported_once(app, database, caplog, monkeypatch):
    monkeypatch.setattr(held, "BUSY_EVERY", 0.05)
    monkeypatch.setattr(held, "IDLE_EVERY", 0.05)
    compared = "select returns from tenure.queues where name = 'default'"

    @app.job
    async def work(n: int) -> int:
        return n

    async with serving(app):
        await work.enqueue(0)
        await completed(database, 1)
        database.sql(REFUSE_100)
        try:
            [(worker,)] = database.sql("select id::text from tenure.workers where died_at is null")
            for n in (100, 101, 102):
                forge_job(database.sql, "running", worker_id=worker, fence=1, attempt=1, input=json.dumps({"n": n}))
            await completed(database, 3)
            [(before,)] = database.sql(compared)
            await until(lambda: database.sql(compared)[0][0] > before + 2)  # compared some more times
            assert database.sql("select input ->> 'n', state from tenure.jobs") == [("100", "running")]
        finally:
            database.sql("drop function public.refuse() cascade")
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.message.startswith("PostgreSQL refuses to requeue a job") for record in told] == [True]


async def test_an_unknown_job_that_a_transaction_has_locked_holds_up_neither_others_nor_outcomes_and_is_requeued_later(
    app, database, other, monkeypatch
):
    """Behind a pooler, where no lock timeout of ours would end the wait. When the lock is released the worker is idle: only what
    the last comparison left makes it look again."""
    monkeypatch.setattr(held, "BUSY_EVERY", 0.05)
    monkeypatch.setattr(held, "AFTER_DOUBT", ())
    monkeypatch.setattr("tenure.worker.engine.POOLED_LIMIT", 3600.0)
    app.configure(pooled=True)
    released = asyncio.Event()

    @app.job
    async def work(n: int) -> None:
        if n == 0:
            await released.wait()

    async with serving(app) as worker:
        await work.enqueue(0)
        await until(lambda: worker._engine.running == 1)
        with other.connection.transaction():
            locked = forge_job(database.sql, "running", fence=1, attempt=1, input=json.dumps({"n": 1}))
            other.sql("select from tenure.jobs where id = %s for update", locked)
            database.sql("update tenure.claims set worker_id = %s where %s = any (job_ids)", worker.worker_id, locked)
            forge_job(database.sql, "running", worker_id=worker.worker_id, fence=1, attempt=1, input=json.dumps({"n": 2}))
            await completed(database, 1)
            released.set()
            await completed(database, 2)
        await completed(database, 3)


async def test_while_a_claim_is_in_doubt_an_idle_worker_keeps_comparing(app, database, monkeypatch):
    """Its transaction may commit at any time, as one behind a pooler that waited for a lock."""
    monkeypatch.setattr(held, "BUSY_EVERY", 0.05)
    monkeypatch.setattr(held, "AFTER_DOUBT", (0.0, 3600.0))

    @app.job
    async def work(n: int) -> None: ...

    async with serving(app) as worker:
        worker._engine._held_jobs.doubt()
        await until(lambda: len(worker._engine._held_jobs._doubts) == 1)  # the first comparison has found nothing
        forge_job(database.sql, "running", worker_id=worker.worker_id, fence=1, attempt=1, input=json.dumps({"n": 1}))
        await completed(database, 1)
