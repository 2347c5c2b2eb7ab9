"""A worker removes the rows of its claims when their jobs have ended, and not before."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tenure.model.errors import StoreUnavailable
from tenure.store.link import Link
from tenure.worker.claim import ended_claims
from tests.waiting import until
from tests.worker.serving import serving

CLAIMS = "select count(*) from tenure.claims"


@pytest.fixture
async def app(app, monkeypatch):
    monkeypatch.setattr(ended_claims, "BUSY_EVERY", 0.02)
    monkeypatch.setattr(ended_claims, "IDLE_EVERY", 0.02)
    yield app
    await app.close()


def completed(database, count):
    return until(lambda: database.sql("select count(*) from tenure.history"), is_=[(count,)])


async def test_no_row_is_left_of_claims_whose_jobs_have_ended(app, database):
    @app.job
    async def work(n: int) -> None:
        if n % 10 == 0:
            raise ValueError("no")

    async with serving(app, concurrency=5):
        await app.enqueue_many(work.using(max_attempts=1).call(n) for n in range(100))
        await completed(database, 90)
        await until(lambda: database.sql(CLAIMS), is_=[(0,)])
        assert database.sql("select state, count(*) from tenure.jobs group by 1") == [("dead_letter", 10)]


async def test_the_row_of_a_claim_stays_until_the_last_of_its_jobs_has_ended(app, database):
    released = asyncio.Event()

    @app.job
    async def work(n: int) -> None:
        if n == 0:
            await released.wait()

    await app.enqueue_many(work.call(n) for n in range(5))
    async with serving(app, concurrency=5) as worker:
        await completed(database, 4)
        await work.enqueue(5)  # of another claim
        await completed(database, 5)
        await until(lambda: database.sql(CLAIMS), is_=[(1,)])
        assert database.sql(
            "select h.worker_id::text, j.input ->> 'n' from tenure.held_jobs h join tenure.jobs j using (id)"
        ) == [(worker.worker_id, "0")]
        released.set()
        await completed(database, 6)
        await until(lambda: database.sql(CLAIMS), is_=[(0,)])


async def test_the_row_of_a_claim_whose_answer_was_lost_goes_when_its_jobs_are_requeued(app, database, monkeypatch):
    fetch, lost = Link.fetch, []

    async def losing(link, query, **options):
        rows = await fetch(link, query, **options)
        if query.name == "jobs/claim_jobs" and not lost and any(row.job.id is not None for row in rows):
            lost.append(query.values["claim_id"])
            raise StoreUnavailable("the connection broke")
        return rows

    monkeypatch.setattr(Link, "fetch", losing)

    @app.job
    async def work() -> None: ...

    async with serving(app):
        await work.enqueue()
        await completed(database, 1)
        assert len(lost) == 1
        assert database.sql("select fence, attempt from tenure.history") == [(2, 1)]
        await until(lambda: database.sql(CLAIMS), is_=[(0,)])


async def test_jobs_that_run_and_are_claimed_all_the_time_are_never_without_the_row_of_their_claim(app, database):
    """Looked at in one snapshot each, while claims come and go."""

    @app.job
    async def work(n: int) -> None:
        await asyncio.sleep(0.001 * (n % 5))

    unfound = "select count(*) from tenure.jobs where claim_id is not null and id not in (select h.id from tenure.held_jobs h)"
    seen = set()
    async with serving(app, concurrency=8):
        await app.enqueue_many(work.call(n) for n in range(400))
        while database.sql("select count(*) from tenure.history") < [(400,)]:
            seen.update(database.sql(unfound))
            await asyncio.sleep(0)
    assert seen <= {(0,)}
    assert database.sql(CLAIMS) == [(0,)], "and none is left when the worker has gone"


REFUSE_ONE = """
    create or replace function public.refuse() returns trigger language plpgsql as
        'begin raise exception ''not today'' using errcode = ''AU001''; end';
    create trigger refuse before delete on tenure.claims for each row
        when (old.id = '{claim}') execute function public.refuse()"""


def ended_claim(database, worker_id):
    """The row of a claim whose jobs have ended, older than those that the worker makes."""
    [(claim_id,)] = database.sql(
        "insert into tenure.claims (id, worker_id, at, job_ids)"
        " values (gen_random_uuid(), %s, now(), array[gen_random_uuid()]) returning id::text",
        worker_id,
    )
    return claim_id


async def test_a_claim_that_postgresql_refuses_to_delete_stops_no_other_and_is_reported_once(app, database, caplog):
    @app.job
    async def work() -> None: ...

    async with serving(app) as worker:
        refused = ended_claim(database, worker.worker_id)
        database.sql(REFUSE_ONE.format(claim=refused))
        try:
            for count in range(1, 4):
                await work.enqueue()
                await completed(database, count)
                await until(lambda: database.sql("select id::text from tenure.claims"), is_=[(refused,)])
        finally:
            database.sql("drop function public.refuse() cascade")
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.claim_id for record in told] == [refused]


async def test_a_claim_that_a_transaction_has_locked_holds_up_neither_other_claims_nor_outcomes_and_goes_later(
    app, database, other, monkeypatch
):
    """Behind a pooler, where no lock timeout of ours would end the wait."""
    monkeypatch.setattr("tenure.worker.engine.POOLED_LIMIT", 3600.0)
    app.configure(pooled=True)

    @app.job
    async def work() -> None: ...

    async with serving(app) as worker:
        locked = ended_claim(database, worker.worker_id)
        with other.connection.transaction():
            other.sql("select from tenure.claims where id = %s for update", locked)
            for count in range(1, 4):
                await work.enqueue()
                await completed(database, count)
                await until(lambda: database.sql("select id::text from tenure.claims"), is_=[(locked,)])
        await until(lambda: database.sql(CLAIMS), is_=[(0,)])
