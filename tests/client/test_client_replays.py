"""Running jobs again: at once, from the start, or as new ones; and nothing is lost by a mistake."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from tenure import Tenure
from tenure.model.errors import ConfigError, InvalidInput, InvalidPayload, JobNotFound, NotPossible
from tenure.store import jobs
from tests.client.listening import notified, sent_statements
from tests.store.database import Database
from tests.store.forged_jobs import change_state, forge_job
from tests.waiting import until


def make_dead_letters(database: Database, count: int = 1, **more) -> list[str]:
    """Dead letters, after two attempts and with an error."""
    ids = database.enqueue(*[{"max_attempts": 2, **more} for _ in range(count)])
    change_state(database.sql, "dead_letter", *ids, attempt=2, crashes=1, fence=2, error="boom")
    return ids


def finish(database: Database, job_id: str, state: str = "completed") -> None:
    claim = database.claim(database.worker(queues=["mail"]), queues=["default", "mail"], capabilities=["gpu"])
    assert claim.ids == [job_id]
    database.run(jobs.finish(claim.finished(state=state)))


# One job


async def test_a_job_that_waits_for_its_time_is_run_at_once_behind_the_others(client, database, other):
    scheduled, _pending = database.enqueue({"delay": 600}, {})
    retried = database.enqueue({"delay": 600})[0]
    change_state(database.sql, "retry", retried, attempt=2, error="boom")
    other.sql("listen tenure")
    assert await client.retry(scheduled, by="anna") == UUID(scheduled)
    assert await client.retry(retried) == UUID(retried)
    assert database.sql("select state, run_at, attempt from tenure.jobs order by position") == [
        ("pending", None, 0),
        ("pending", None, 0),
        ("pending", None, 2),
    ]
    assert database.sql("select job_id::text, what, attempt, by from tenure.incidents order by at") == [
        (scheduled, "retried", 0, "anna"),
        (retried, "retried", 2, None),
    ]
    assert await notified(other, 1) == {"jobs default"}


async def test_a_dead_letter_starts_from_the_beginning(client, database):
    [job_id] = make_dead_letters(database)
    assert await client.retry(job_id) == UUID(job_id)
    job = database.job(job_id)
    assert (job["state"], job["attempt"], job["crashes"], job["error"], job["fence"]) == ("pending", 0, 0, "boom", 2)
    assert database.claim(database.worker()).ids == [job_id]


async def test_a_pending_job_stays_as_it_is(client, database):
    [job_id] = database.enqueue({})
    before = database.sql("select j.*, j.ctid from tenure.jobs j")
    assert await client.retry(job_id) == UUID(job_id)
    assert database.sql("select j.*, j.ctid from tenure.jobs j") == before
    assert database.sql("select count(*) from tenure.incidents") == [(0,)]


@pytest.mark.parametrize(("state", "told"), [("running", "cancel it first"), ("blocked", "blocked by"), ("waiting", "waits for")])
async def test_what_cannot_be_retried_is_refused_with_the_way_out(client, database, state, told):
    job_id = forge_job(database.sql, state)
    with pytest.raises(NotPossible, match=told) as caught:
        await client.retry(job_id)
    assert caught.value.ids == [UUID(job_id)]
    assert database.job(job_id)["state"] == state


@pytest.mark.parametrize("state", ["completed", "failed", "canceled"])
async def test_of_a_finished_job_a_new_one_is_made(client, database, other, state):
    given = {
        "queue": "mail",
        "priority": 70,
        "capability": "gpu",
        "max_attempts": 9,
        "timeout": 12.5,
        "input": {"key": None, "claim": [1.50, None]},
        "auth": {"user": 1},
        "meta": {"a": 1},
        "key": "k",
    }
    [job_id] = database.enqueue(given)
    finish(database, job_id, state)
    old = database.job(job_id)
    other.sql("listen tenure")
    new_id = await client.retry(job_id, by="anna")
    new = database.job(str(new_id))
    assert new_id != UUID(job_id)
    same = ("kind", "queue", "priority", "capability", "max_attempts", "timeout", "input", "auth", "meta")
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert (new["state"], new["attempt"], new["key"], new["enqueued_by"]) == ("pending", 0, f"retry of {job_id}", "anna")
    assert new["system"] == {"retry_of": job_id}
    assert database.job(job_id) == old
    assert database.sql("select job_id::text, what, by from tenure.incidents") == [(job_id, "retried", "anna")]
    assert await notified(other, 1) == {"jobs mail"}


async def test_the_least_of_a_job_can_be_retried_too(client, database):
    [job_id] = database.enqueue({})
    finish(database, job_id)
    new = database.job(str(await client.retry(job_id)))
    assert (new["input"], new["auth"], new["meta"], new["system"]) == ({}, None, None, {"retry_of": job_id})


async def test_a_job_that_is_gone_cannot_be_retried(client):
    with pytest.raises(JobNotFound):
        await client.retry(uuid4())


async def test_a_retry_waits_for_the_current_holder_of_the_row(client, database, other):
    [job_id] = make_dead_letters(database)
    asked = sent_statements(client)
    with other.connection.transaction():
        other.sql("select from tenure.jobs for update")
        retrying = asyncio.create_task(client.retry(job_id))
        await until(lambda: len(asked) >= 2)
    assert await retrying == UUID(job_id)
    assert database.job(job_id)["state"] == "pending"


async def test_a_position_is_taken_after_the_transaction_has_its_number(client, database):
    """Workers rely on it: below the floor nothing may appear."""
    [job_id] = make_dead_letters(database)
    await client.retry(job_id)
    [(xid, position)] = database.sql("select xmin::text::bigint, position from tenure.jobs")
    worker = database.worker()
    # Other databases of this server have transactions open, too.
    claim = await until(lambda: (seen := database.claim(worker, kinds=["other"])).reply.xmin > xid and seen)
    assert claim.reply.position == position


# Dead letters


async def test_dead_letters_are_replayed_in_bulk_the_oldest_first(client, database, other):
    ids = make_dead_letters(database, 1100)
    [alive] = database.enqueue({})
    other.sql("listen tenure")
    assert await client.replay(*reversed(ids), alive, uuid4(), ids[0], by="anna") == 1100
    assert [str(row[0]) for row in database.sql("select id from tenure.jobs order by position")] == [alive, *sorted(ids)]
    assert database.sql("select distinct state, attempt, crashes from tenure.jobs") == [("pending", 0, 0)]
    assert database.sql("select what, attempt, fence, by, count(*) from tenure.incidents group by 1, 2, 3, 4") == [
        ("replayed", 2, 2, "anna", 1100)
    ]
    assert await notified(other, 1) == {"jobs default"}
    assert await client.replay(*ids) == 0


async def test_input_and_priority_may_be_changed(client, database):
    [job_id] = make_dead_letters(database, input={"a": 1})
    assert await client.replay(job_id, input={"b": 2}, priority="critical") == 1
    assert (database.job(job_id)["input"], database.job(job_id)["priority"]) == ({"b": 2}, 100)
    [other] = make_dead_letters(database, input={"a": 1})
    assert await client.replay(other, input=None) == 1
    assert (database.job(other)["input"], database.job(other)["priority"]) == (None, 50)


async def test_input_that_does_not_fit_the_kind_is_refused_and_nothing_is_lost(app, client, database):
    @app.job
    async def work(n: int) -> None: ...

    ids = make_dead_letters(database, 600, input={"n": 1})
    before = database.sql("select * from tenure.jobs order by id")
    for wrong in ({"n": "x"}, {"m": 1}, [], None):
        with pytest.raises(InvalidInput, match="'work'"):
            await client.replay(*ids, input=wrong)
        with pytest.raises(InvalidInput):
            await client.replay_all(kind="work", new_input=wrong)
    for unkept in ({"n": float("nan")}, {"n": "\0"}, {"n": object()}):
        with pytest.raises(InvalidPayload):
            await client.replay(*ids, input=unkept)
    with pytest.raises(ConfigError, match="priority"):
        await client.replay(*ids, priority="hi")
    assert database.sql("select * from tenure.jobs order by id") == before
    assert await client.replay(*ids, input={"n": 2}) == 600


async def test_one_job_whose_kind_does_not_take_the_input_keeps_all_from_being_replayed(app, client, database):
    @app.job
    async def work(n: int) -> None: ...

    @app.job
    async def toil(m: int) -> None: ...

    ids = [
        *make_dead_letters(database, kind="work"),
        *make_dead_letters(database, kind="toil"),
        *make_dead_letters(database, kind="unknown"),
    ]
    with pytest.raises(InvalidInput, match="'toil'"):
        await client.replay(*ids, input={"n": 1})
    assert database.sql("select distinct state from tenure.jobs") == [("dead_letter",)]
    assert await client.replay(ids[0], ids[2], input={"n": 1}) == 2


async def test_all_that_fit_are_replayed(client, database):
    mail = make_dead_letters(database, 700, queue="mail")
    rest = make_dead_letters(database, 5)
    assert await client.replay_all(queue="mail", new_priority=80) == 700
    assert [
        str(row[0]) for row in database.sql("select id from tenure.jobs where state = 'pending' order by position")
    ] == sorted(mail)
    assert database.sql("select distinct priority from tenure.jobs where state = 'pending'") == [(80,)]
    assert await client.replay_all() == 5
    assert await client.replay_all(state="dead_letter") == 0
    assert database.job(rest[0])["state"] == "pending"


async def test_replaying_all_is_for_dead_letters_and_input_for_one_kind(client):
    with pytest.raises(ConfigError, match="dead letters only"):
        await client.replay_all(state="failed")
    with pytest.raises(ConfigError, match="needs kind="):
        await client.replay_all(queue="mail", new_input={})


async def test_two_clients_that_replay_the_same_jobs_replay_each_job_once(dsn, client, database):
    ids = make_dead_letters(database, 300)
    rival = Tenure(dsn)
    counts = await asyncio.gather(client.replay(*ids), rival.client().replay(*ids))
    await rival.close()
    assert sum(counts) == 300
    assert database.sql("select count(*) from tenure.incidents") == [(300,)]


def test_code_without_a_loop_replays_too(dsn, database):
    app = Tenure(dsn)
    first, second, third = make_dead_letters(database, 3)
    assert app.client().replay_sync(first) == 1
    assert app.client().retry_sync(second) == UUID(second)
    assert app.client().replay_all_sync() == 1
    assert database.job(third)["state"] == "pending"
    app._portal.close()


async def test_the_fence_of_a_replayed_job_continues_to_grow(client, database):
    """Stores of the user's own have seen the old one."""
    [retried, replayed] = make_dead_letters(database, 2)
    await client.retry(retried)
    await client.replay(replayed)
    claim = database.claim(database.worker())
    assert {job["id"]: job["fence"] for job in claim.jobs} == {retried: 3, replayed: 3}


async def test_many_clients_that_retry_a_finished_job_at_once_get_the_same_new_one(dsn, client, database):
    [job_id] = database.enqueue({})
    finish(database, job_id)
    others = [Tenure(dsn) for _ in range(4)]
    new_ids = await asyncio.gather(*(app.client().retry(job_id) for app in others for _ in range(5)))
    assert len(set(new_ids)) == 1
    assert database.sql("select count(*) from tenure.jobs") == [(1,)]
    assert database.sql("select count(*) from tenure.incidents where what = 'retried'") == [(1,)]
    # Once that one is over, the next is another.
    finish(database, str(new_ids[0]))
    assert await client.retry(job_id) != new_ids[0]
    for app in others:
        await app.close()
