"""Jobs that handlers enqueue are children of their run, as long as the run holds its own job."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tenure import Context, LeaseLost, NotEnqueued
from tests.store.database import Database
from tests.store.forged_jobs import take_over
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.waiting import until
from tests.worker.serving import serving

MINE = "select count(*) from tenure.all_jobs where kind = 'child'"


@pytest.fixture
async def app(app):
    @app.job(queue="later")
    async def child(n: int = 0) -> None: ...

    app.child = child
    yield app
    await app.close()
    app._portal.close()


def take_away(database):
    take_over(database.sql)


WAYS = {
    "enqueue": lambda app, _: app.child.enqueue(1),
    "enqueue_many": lambda app, _: app.enqueue_many([app.child.call(1), app.child.call(2)]),
    "with a key": lambda app, _: app.child.using(key="k").enqueue(1),
    "through a connection": lambda app, conn: app.child.using(conn=conn).enqueue(1),
    "many through a connection": lambda app, conn: app.enqueue_many([app.child.call(1)], conn=conn),
}
SYNC_WAYS = {
    "enqueue": lambda app, _: app.child.enqueue_sync(1),
    "enqueue_many": lambda app, _: app.enqueue_many_sync([app.child.call(1), app.child.call(2)]),
    "through a connection": lambda app, conn: app.child.using(conn=conn).enqueue_sync(1),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_run_whose_job_was_taken_away_cannot_enqueue(app, dsn, database, way):
    caught = []

    @app.job
    async def parent(ctx: Context) -> None:
        take_away(database)
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            try:
                await WAYS[way](app, connection)
            except LeaseLost as error:
                caught.append(error)
                raise

    async with serving(app, queues=["default"]):
        handle = await parent.enqueue()
        await until(lambda: caught)
    assert (caught[0].job_id, caught[0].reason) == (handle.id, "taken_by_another_worker")
    assert database.sql(MINE) == [(0,)]
    assert database.sql("select count(*) from tenure.keys") == [(0,)]


async def test_a_run_whose_job_was_requeued_and_claimed_by_its_own_worker_cannot_enqueue(app, database):
    """It let its own lease expire: the job is held by the same worker, but not by this run."""
    refused, go_on = [], asyncio.Event()

    @app.job(lease="500ms")
    async def parent(ctx: Context) -> None:
        if ctx.fence > 1:
            await go_on.wait()
            return
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            try:
                await app.child.enqueue(1)
            except LeaseLost as error:
                refused.append(error)
            go_on.set()
            raise

    async with serving(app, queues=["default"]):
        await parent.enqueue()
        await go_on.wait()
    assert len(refused) == 1
    assert database.sql(MINE) == [(0,)]


@pytest.mark.parametrize("way", SYNC_WAYS)
async def test_a_thread_whose_job_was_taken_away_cannot_enqueue(app, dsn, database, way):
    caught = []

    @app.job
    def parent(ctx: Context) -> None:
        take_away(database)
        with psycopg.connect(dsn) as connection:
            try:
                SYNC_WAYS[way](app, connection)
            except LeaseLost as error:
                caught.append(error)
                raise

    async with serving(app, queues=["default"]):
        handle = await parent.enqueue()
        await until(lambda: caught)
    assert caught[0].job_id == handle.id
    assert database.sql(MINE) == [(0,)]


@pytest.mark.parametrize("gone", ["finished", "deleted", "pending again"])
async def test_a_run_that_does_not_hold_its_job_cannot_enqueue_in_any_state_of_that_job(app, database, gone):
    caught = []
    ways = {
        "finished": """with over as (delete from tenure.jobs where kind = 'parent' returning *)
                       insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes,
                              state, kind, queue, input)
                       select id, fence, enqueued_at, now(), 1, 3, 50, 0, 'canceled', kind, queue, input from over""",
        "deleted": "delete from tenure.jobs where kind = 'parent'",
        "pending again": "update tenure.jobs set state = 'scheduled', claim_id = null, position = 0, run_at = 'infinity'",
    }

    @app.job
    async def parent(ctx: Context) -> None:
        database.sql(ways[gone])
        try:
            await app.child.enqueue()
        except LeaseLost as error:
            caught.append(error)

    async with serving(app, queues=["default"]):
        await parent.enqueue()
        await until(lambda: caught)
    assert database.sql(MINE) == [(0,)]


async def test_children_of_a_run_know_their_parent_and_inherit_on_whose_behalf_it_is(app, database):
    @app.job
    async def parent(ctx: Context) -> None:
        await app.child.enqueue(1)
        await app.child.using(auth={"user": 8}).enqueue(2)
        await app.enqueue_many([app.child.call(3)])
        async with ctx.db() as conn:
            await app.child.using(conn=conn).enqueue(4)
        await asyncio.gather(asyncio.create_task(app.child.enqueue(5)), asyncio.to_thread(app.child.enqueue_sync, 6))

    @app.job
    def parent_in_thread(ctx: Context) -> None:
        app.child.enqueue_sync(11)
        app.enqueue_many_sync([app.child.call(12)])

    async with serving(app, queues=["default"]):
        one = await parent.using(auth={"user": 7}, meta={"mine": 1}).enqueue()
        two = await parent_in_thread.enqueue()
        await asyncio.gather(one.result(timeout=30), two.result(timeout=10))
    columns = "(input ->> 'n')::int, parent_id, auth, meta"
    wanted = [(n, one.id, {"user": 8 if n == 2 else 7}, None) for n in range(1, 7)] + [(n, two.id, None, None) for n in (11, 12)]
    assert database.sql(f"select {columns} from tenure.jobs where kind = 'child' order by 1") == wanted
    assert database.sql("select parent_id, auth from tenure.history where kind = 'parent'") == [(None, {"user": 7})]


async def test_children_of_several_runs_in_one_statement_are_judged_one_by_one(app, database):
    """Concurrent enqueues share a statement: a run that lost its job must not take others along."""
    together = asyncio.Barrier(10)

    @app.job
    async def parent(ctx: Context, n: int) -> str:
        if n == 3:
            take_over(database.sql, ctx.job_id)
        await together.wait()
        try:
            await app.child.enqueue(n)
        except LeaseLost:
            return outcomes.setdefault(n, "lost")
        return outcomes.setdefault(n, "enqueued")

    outcomes: dict[int, str] = {}
    async with serving(app, queues=["default"]):
        await app.enqueue_many([parent.call(n) for n in range(10)])
        await until(lambda: len(outcomes), is_=10)
    assert outcomes == {n: "lost" if n == 3 else "enqueued" for n in range(10)}
    assert database.sql("select (input ->> 'n')::int from tenure.jobs where kind = 'child' order by 1") == [
        (n,) for n in range(10) if n != 3
    ]


async def test_a_statement_that_takes_a_job_away_waits_until_its_children_are_enqueued(database, other, dsn):
    """No child can appear after another run has claimed its parent."""
    [job] = database.enqueue({"kind": "work"})
    claim = database.claim(database.worker())
    child = {"kind": "child", "parent": job, "claim": claim.id}
    with Database(dsn) as taker:
        with other.connection.transaction():
            other.enqueue(child)
            joined = meanwhile(lambda: take_over(taker.sql, job))
            await waits_for_a_lock(database)
            assert str(database.job(job)["claim_id"]) == claim.id
        joined()
    with pytest.raises(psycopg.Error, match="no longer holds its own job"):
        other.enqueue(child)
    assert database.sql(MINE) == [(1,)]


def test_a_lost_lease_is_not_a_mistake_of_the_call():
    assert not issubclass(LeaseLost, NotEnqueued)
