"""Keys under contention: in every order of commits, one job owns a key, and every caller gets its id."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from contextlib import asynccontextmanager
from uuid import uuid4

import psycopg
import pytest

from tenure import Handle, KeyTaken, StoreUnavailable, Tenure
from tenure.store import jobs
from tenure.store.link import Link
from tests.store.forged_jobs import change_state
from tests.store.locks import meanwhile, waits_for_a_lock

MANY = 50


@pytest.fixture
async def app(dsn):
    app = made(dsn)
    yield app
    await app.close()
    app._portal.close()


def made(dsn) -> Tenure:
    app = Tenure(dsn)

    @app.job
    async def pay(order: str) -> None: ...

    app.pay = pay
    app.keyed = pay.using(key="k", key_for="live")
    return app


def count(database):
    return database.sql("select count(*) from tenure.all_jobs")[0][0]


def agree(handles: Iterable[Handle], database) -> None:
    """One job was made, one of them made it, and all know which."""
    handles = list(handles)
    assert {handle.id for handle in handles} == {row[0] for row in database.sql("select id from tenure.all_jobs")}
    assert (count(database), [handle.existed for handle in handles].count(False)) == (1, 1)


async def test_tasks_of_one_loop_make_one_job(app, database):
    agree(await asyncio.gather(*(app.keyed.enqueue("a") for _ in range(MANY))), database)


def test_tasks_of_several_loops_make_one_job(dsn, database):
    handles, start = [], threading.Barrier(5)

    async def loop():
        app = made(dsn)
        await app.check()
        await asyncio.to_thread(start.wait)
        handles.extend(await asyncio.gather(*(app.keyed.enqueue("a") for _ in range(MANY // 5))))
        await app.close()

    in_threads([lambda: asyncio.run(loop())] * 5)
    assert len(handles) == MANY
    agree(handles, database)


def test_threads_make_one_job(dsn, database):
    apps, handles, start = [made(dsn) for _ in range(5)], [], threading.Barrier(MANY)

    def enqueue(app):
        start.wait()
        handles.append(app.keyed.enqueue_sync("a"))

    in_threads([lambda app=app: enqueue(app) for app in apps for _ in range(MANY // 5)])
    for app in apps:
        app._portal.close()
    assert len(handles) == MANY
    agree(handles, database)


def in_threads(works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def enqueue_in(app, connection) -> Handle:
    return app.pay.using(key="k", key_for="live", conn=connection).enqueue_sync("a")


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_key_taken_by_a_transaction_that_ends_late_is_waited_for(app, dsn, database, ending):
    with psycopg.connect(dsn) as late:
        first = enqueue_in(app, late)
        waiting = asyncio.create_task(app.keyed.enqueue("a"))
        await waits_for_a_lock(database)
        assert (waiting.done(), count(database)) == (False, 0)
        getattr(late, ending)()
        second = await waiting
    if ending == "commit":
        agree([first, second], database)
    else:
        agree([second], database)
        assert second.id != first.id


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_two_transactions_that_want_one_key_follow_each_other(app, dsn, database, ending):
    with psycopg.connect(dsn) as one, psycopg.connect(dsn) as two:
        first = enqueue_in(app, one)
        joined = meanwhile(lambda: enqueue_in(app, two))
        await waits_for_a_lock(database)
        getattr(one, ending)()
        second = joined()
        two.commit()
    agree([first, second] if ending == "commit" else [second], database)


def finish(database):
    claim = database.claim(database.worker(), kinds=["pay"])
    assert len(claim.ids) == 1
    database.run(jobs.finish(claim.finished()))


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_key_that_became_free_is_taken_over_by_one_of_two(app, dsn, database, ending):
    old = await app.keyed.enqueue("a")
    finish(database)
    with psycopg.connect(dsn) as one, psycopg.connect(dsn) as two:
        first = enqueue_in(app, one)
        joined = meanwhile(lambda: enqueue_in(app, two))
        await waits_for_a_lock(database)
        getattr(one, ending)()
        second = joined()
        two.commit()
    assert (first.existed, second.existed, old.id in (first.id, second.id)) == (False, ending == "commit", False)
    assert database.sql("select id from tenure.jobs") == [(second.id,)]
    assert (first.id == second.id) is (ending == "commit")
    assert database.sql("select job_id from tenure.keys") == [(second.id,)]


async def test_a_job_that_is_being_finished_still_owns_its_key(app, database, other):
    first = await app.keyed.enqueue("a")
    claim = database.claim(database.worker(), kinds=["pay"])
    with other.connection.transaction():
        other.run(jobs.finish(claim.finished()))
        assert (await app.keyed.enqueue("a")).id == first.id
    assert not (await app.keyed.enqueue("a")).existed


async def test_many_that_find_a_finished_job_make_one_new(dsn, database):
    apps = [made(dsn) for _ in range(5)]
    old = await apps[0].keyed.enqueue("a")
    finish(database)
    handles = await asyncio.gather(*(asyncio.to_thread(app.keyed.enqueue_sync, "a") for app in apps for _ in range(4)))
    await apps[0].close()
    for app in apps:
        app._portal.close()
    assert [handle.existed for handle in handles].count(False) == 1
    assert {handle.id for handle in handles} == {row[0] for row in database.sql("select id from tenure.jobs")}
    assert old.id not in {handle.id for handle in handles}


async def test_batches_with_the_same_keys_in_opposite_order_both_go_through(dsn, database):
    """Each of several statements, so that each holds keys that the other wants."""
    apps = one, two = made(dsn), made(dsn)
    names = [f"{n:04}" for n in range(1200)]

    def batch(app, order):
        return app.enqueue_many([app.pay.using(key=name).call(name) for name in order])

    made_by = await asyncio.gather(batch(one, names), batch(two, names[::-1]))
    for app in apps:
        await app.close()
    assert database.sql("select count(*), count(distinct key) from tenure.jobs") == [(1200, 1200)]
    assert [handle.id for handle in made_by[0]] == [handle.id for handle in reversed(made_by[1])]
    assert sum(not handle.existed for handles in made_by for handle in handles) == 1200


@pytest.fixture
def lost_once(monkeypatch):
    """The first enqueue is committed, and its answer lost; what is added here happens in between."""
    fetch, between, lost = Link.fetch, [], []

    async def lose(self, query, **options):
        answer = await fetch(self, query, **options)
        if query.name == "jobs/enqueue_jobs" and not lost:
            lost.append(query)
            for work in between:
                work()
            raise StoreUnavailable("the connection broke after the commit")
        return answer

    monkeypatch.setattr(Link, "fetch", lose)
    return between


async def test_a_key_whose_answer_was_lost_is_still_ones_own(app, database, lost_once):
    handle = await app.keyed.enqueue("a")
    agree([handle], database)
    assert (await app.keyed.enqueue("a")).id == handle.id


async def test_a_key_whose_answer_was_lost_and_whose_job_is_finished_since_makes_no_second_job(app, database, lost_once):
    lost_once.append(lambda: finish(database))
    handle = await app.keyed.enqueue("a")
    agree([handle], database)
    assert (await handle.status()).state == "completed"


async def test_a_key_taken_over_while_the_answer_was_lost_stays_with_its_new_owner(app, dsn, database, lost_once):
    taken: list[Handle] = []

    def take_over():
        with psycopg.connect(dsn) as connection:
            taken.append(enqueue_in(app, connection))

    lost_once.extend((lambda: finish(database), take_over))
    handle = await app.keyed.enqueue("a")
    assert (handle.existed, taken[0].existed, handle.id == taken[0].id) == (False, False, False)
    assert count(database) == 2
    assert (await app.keyed.enqueue("a")).id == taken[0].id


async def test_the_news_that_a_job_existed_is_not_lost_with_the_answer(app, dsn, database, lost_once):
    with psycopg.connect(dsn) as connection:
        first = enqueue_in(app, connection)
    agree([first, await app.keyed.enqueue("a")], database)


async def test_a_batch_with_keys_whose_answer_was_lost_is_made_once(app, dsn, database, monkeypatch):
    transaction, lost = Link.transaction, []

    @asynccontextmanager
    async def losing(self):
        async with transaction(self) as run:
            yield run
        if not lost:
            lost.append(self)
            raise StoreUnavailable("the connection broke after the commit")

    monkeypatch.setattr(Link, "transaction", losing)
    calls = [app.pay.using(key=f"{n % 600}").call(f"{n}") for n in range(700)]
    handles = await app.enqueue_many(calls)
    assert (len(lost), count(database)) == (1, 600)
    assert [handle.existed for handle in handles] == [False] * 600 + [True] * 100
    assert [handle.id for handle in handles[600:]] == [handle.id for handle in handles[:100]]


async def test_a_replay_and_an_enqueue_of_one_key_at_once_leave_one_live_job(app, database, other):
    first = await app.keyed.enqueue("a")
    change_state(database.sql, "dead_letter")
    with other.connection.transaction():
        [(made,)] = other.sql(
            "select id from tenure.enqueue(%s)", '[{"kind": "pay", "key": "k", "key_for": "live", "input": {"order": "b"}}]'
        )
        replaying = asyncio.create_task(app.client().replay(first.id))
        await waits_for_a_lock(database)
    with pytest.raises(KeyTaken) as refused:
        await replaying
    assert refused.value.holders == {first.id: made}
    assert database.sql("select id from tenure.jobs where state = 'pending'") == [(made,)]


async def test_an_enqueue_that_waits_for_a_replay_meets_the_replayed_job(app, database, other):
    first = await app.keyed.enqueue("a")
    change_state(database.sql, "dead_letter")
    with other.connection.transaction():
        other.run(jobs.replay([first.id]))
        enqueuing = asyncio.create_task(app.keyed.enqueue("b"))
        await waits_for_a_lock(database)
    second = await enqueuing
    assert (second.id, second.existed) == (first.id, True)
    assert database.sql("select count(*) from tenure.jobs") == [(1,)]


def test_asking_again_gives_up_where_it_can_never_succeed(database):
    """A unique index that is not ours, or a snapshot that is too old, must not cause an endless loop in the server."""
    database.sql("create unique index others on tenure.jobs (kind) where kind = 'single'")
    first, second = (json.dumps([{"id": str(uuid4()), "kind": "single"}]) for _ in range(2))
    try:
        database.sql("select * from tenure.enqueue(%s)", first)
        with pytest.raises(psycopg.errors.UniqueViolation):
            database.sql("select * from tenure.enqueue(%s, true)", second)
    finally:
        database.sql("drop index tenure.others")


def test_asking_again_under_an_old_snapshot_is_reported_as_a_serialization_failure(database, other):
    asked = json.dumps([{"id": str(uuid4()), "kind": "work"}])
    other.sql("begin isolation level repeatable read")
    other.sql("select count(*) from tenure.jobs")  # takes the snapshot
    database.sql("select * from tenure.enqueue(%s)", asked)
    with pytest.raises(psycopg.errors.SerializationFailure):
        other.sql("select * from tenure.enqueue(%s, true)", asked)
    other.sql("rollback")
