"""A worker removes the rows of its claims when their jobs have ended, and not before."""

from __future__ import annotations

import asyncio

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
