"""Canceling: from any live state, at once, and against claims and settlements exactly one wins."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from threading import Event, Thread
from uuid import uuid4

import pytest

from tenure import Tenure
from tenure.client import lock_retry as patience
from tenure.model.errors import ConfigError, InvalidJobId, JobsLocked
from tenure.model.states import FINISHED, HELD, LIVE, State
from tenure.store import claims, jobs
from tests.client.listening import notified, sent_statements
from tests.store.database import Database
from tests.store.forged_jobs import forge_job
from tests.waiting import until


def put(database: Database, state: State, worker: str) -> str:
    """A job in that state."""
    return forge_job(
        database.sql,
        state,
        worker_id=worker,
        queue="mail",
        run_at="now",
        started_at="yesterday",
        attempt=2,
        fence=4,
        crashes=1,
        priority=60,
        capability="gpu",
        input="[]",
        timeout=5,
        key="k",
        parent_id=uuid4(),
        enqueued_by="me",
        auth="1",
        meta="{}",
    )


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_job_is_canceled_from_any_live_state_and_nothing_of_it_is_lost(client, database, state):
    job_id = put(database, state, database.worker())
    before = database.job(job_id)
    assert await client.cancel(job_id, reason="no need", by="anna") == 1
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]
    after = database.job(job_id)
    assert (after["state"], after["error"]) == ("canceled", "canceled by anna: no need")
    assert timedelta() <= after["finished_at"] - before["enqueued_at"] < timedelta(minutes=1)
    assert after["claim_id"] is None, "history must not say that this very run ended the job"
    changed = {"state", "error", "finished_at", "claim_id", "lease_owner", "lease_expires_at", "heartbeat_at"}
    assert {name: after[name] for name in after if name not in changed} == {
        name: before[name] for name in before if name not in changed
    }
    held = state in HELD
    assert database.sql("select what, attempt, fence, worker_id, started_at, by, error from tenure.incidents") == [
        (
            "canceled",
            *((2, 4, before["worker_id"], before["started_at"]) if held else (None, None, None, None)),
            *("anna", "no need"),
        )
    ]
    [(queue, kind, what, count, ran)] = database.sql("select queue, kind, what, jobs, ran from tenure.tallies")
    assert (queue, kind, what, count, ran is not None) == ("mail", "work", "canceled", 1, held)


@pytest.mark.parametrize(
    ("reason", "by", "error"),
    [
        (None, None, "canceled"),
        ("why", None, "canceled: why"),
        (None, "me", "canceled by me"),
        ("bad \0 text", None, "canceled: bad \ufffd text"),
    ],
)
async def test_reason_and_name_may_be_left_out(client, database, reason, by, error):
    [job_id] = database.enqueue({})
    assert await client.cancel(job_id, reason=reason, by=by) == 1
    assert database.job(job_id)["error"] == error


async def test_what_is_over_or_unknown_is_not_canceled(client, database):
    [done, live] = database.enqueue({}, {"queue": "later"})
    database.run(jobs.finish(database.claim(database.worker()).finished()))
    assert await client.cancel(done, uuid4(), live, live) == 1
    assert [database.job(job_id)["state"] for job_id in (done, live)] == ["completed", "canceled"]
    assert await client.cancel(live) == 0
    assert await client.cancel() == 0


async def test_an_id_that_is_none_is_refused(client):
    with pytest.raises(InvalidJobId, match="not a UUID"):
        await client.cancel("nonsense")


def test_code_without_a_loop_cancels_too(dsn, database):
    app = Tenure(dsn)
    [job_id] = database.enqueue({})
    assert app.client().cancel_sync(job_id, by="anna") == 1
    assert app.client().cancel_all_sync(kind="work") == 0
    app._portal.close()


async def test_a_worker_whose_job_was_canceled_can_settle_nothing_and_learns_why(client, database):
    worker = database.worker()
    [job_id] = database.enqueue({})
    claim = database.claim(worker)
    assert await client.cancel(job_id) == 1
    assert database.run(jobs.finish(claim.finished(output=1))) == []
    assert database.run(jobs.move(claim.outcomes(state="retry", delay=1))) == []
    assert database.run(jobs.find_settled(claim.outcomes())) == []
    [(told_id, *_, reason)] = database.run(claims.check(claim.outcomes()))
    assert (told_id, reason) == (job_id, "canceled")
    assert database.sql("select count(*) from tenure.all_jobs") == [(1,)]


async def test_workers_and_waiters_are_notified(client, database, other):
    running, waiting, watched = database.enqueue({}, {"queue": "later"}, {"queue": "later"})
    database.claim(database.worker())
    database.run(jobs.watch(watched, 60.0))
    other.sql("listen tenure")
    await client.cancel(running, waiting, watched)
    assert await notified(other, 2) == {f"lost {running}", f"ended {watched}"}


async def test_many_running_jobs_are_not_named_one_by_one(client, database, other):
    ids = database.enqueue(*[{} for _ in range(101)])
    database.claim(database.worker(), limit=101)
    other.sql("listen tenure")
    assert await client.cancel(*ids) == 101
    assert await notified(other, 1) == {"lost"}


async def test_a_handler_is_aborted_when_its_job_is_canceled(dsn, database):
    app = Tenure(dsn)
    started, aborted = asyncio.Event(), asyncio.Event()

    @app.job
    async def forever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            aborted.set()

    async with app.running():
        handle = await forever.enqueue()
        await asyncio.wait_for(started.wait(), 10)
        assert await app.client().cancel(handle.id) == 1
        await asyncio.wait_for(aborted.wait(), 4)  # sooner than long runs ask by themselves
    assert database.job(str(handle.id))["state"] == "canceled"
    await app.close()


# Against others


async def test_a_settlement_under_way_wins(client, database, other):
    [job_id] = database.enqueue({})
    claim = database.claim(database.worker())
    asked = sent_statements(client)
    with other.connection.transaction():
        assert len(other.run(jobs.finish(claim.finished()))) == 1
        canceling = asyncio.create_task(client.cancel(job_id))
        await until(lambda: len(asked) >= 2)
    assert await canceling == 0
    assert database.job(job_id)["state"] == "completed"
    assert database.sql("select count(*) from tenure.incidents") == [(0,)]


async def test_a_settlement_that_is_taken_back_leaves_the_job_to_us(client, database, other):
    [job_id] = database.enqueue({})
    claim = database.claim(database.worker())
    asked = sent_statements(client)
    with other.connection.transaction(force_rollback=True):
        other.run(jobs.finish(claim.finished()))
        canceling = asyncio.create_task(client.cancel(job_id))
        await until(lambda: len(asked) >= 2)
    assert await canceling == 1
    assert database.sql("select state from tenure.all_jobs") == [("canceled",)]


async def test_a_job_that_is_just_being_claimed_is_canceled_as_a_running_one(client, database, other):
    worker = database.worker()
    [job_id] = database.enqueue({})
    asked = sent_statements(client)
    with other.connection.transaction():
        assert other.claim(worker).ids == [job_id]
        canceling = asyncio.create_task(client.cancel(job_id))
        await until(lambda: len(asked) >= 2)
    assert await canceling == 1
    assert database.sql("select worker_id::text, attempt from tenure.incidents") == [(worker, 1)]


async def test_a_claim_passes_over_a_job_that_is_just_being_canceled(client, database, other):
    first, second = database.enqueue({}, {})
    with other.connection.transaction():
        other.run(jobs.cancel([first], error="canceled"))
        assert database.claim(database.worker()).ids == [second]
    assert database.job(first)["state"] == "canceled"


async def test_two_clients_that_cancel_the_same_jobs_cancel_each_job_once(dsn, client, database):
    ids = database.enqueue(*[{} for _ in range(300)])
    rival = Tenure(dsn)
    counts = await asyncio.gather(client.cancel(*ids, by="a"), rival.client().cancel(*reversed(ids), by="b"))
    await rival.close()
    assert sum(counts) == 300
    assert database.sql("select count(*), count(distinct id) from tenure.history") == [(300, 300)]
    assert database.sql("select count(*) from tenure.incidents") == [(300,)]
    assert database.sql("select sum(jobs) from tenure.tallies where what = 'canceled'") == [(300,)]


async def test_jobs_that_are_claimed_and_settled_meanwhile_are_neither_lost_nor_ended_twice(dsn, client, database):
    ids = database.enqueue(*[{} for _ in range(600)])
    worker, over = database.worker(), Event()
    settled: list[str] = []

    def work() -> None:
        with Database(dsn) as busy:
            while not over.is_set():
                claim = busy.claim(worker, limit=5)
                settled.extend(row[0] for row in busy.run(jobs.finish(claim.finished())))

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    canceled = 0
    for first in range(0, 600, 40):
        canceled += await client.cancel(*ids[first : first + 40])
    over.set()
    for thread in threads:
        thread.join()
    assert canceled + len(settled) == 600
    assert dict(database.sql("select state, count(*) from tenure.history group by state")) == {
        state: count for state, count in (("canceled", canceled), ("completed", len(settled))) if count
    }
    assert database.sql("select count(distinct id) from tenure.history") == [(600,)]
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_a_row_that_stays_locked_is_reported_after_a_time_limit_and_the_others_are_done(
    client, database, other, monkeypatch
):
    monkeypatch.setattr(patience, "PATIENCE", 0.2)
    stuck, free = database.enqueue({}, {})
    with other.connection.transaction():
        other.sql("select from tenure.jobs where id = %s for share", stuck)
        with pytest.raises(JobsLocked, match="pg_stat_activity") as caught:
            await client.cancel(stuck, free)
    assert [str(job_id) for job_id in caught.value.ids] == [stuck]
    assert [database.job(job_id)["state"] for job_id in (stuck, free)] == ["pending", "canceled"]


# By filter


async def test_all_that_fit_are_canceled_and_no_others(client, database):
    database.enqueue(*[{"queue": "mail"} for _ in range(1200)], *[{"queue": "other"} for _ in range(10)])
    database.claim(database.worker(), queues=["mail"], limit=100)
    assert await client.cancel_all(queue="mail", state="pending", reason="flood") == 1100
    assert dict(database.sql("select queue || ' ' || state, count(*) from tenure.all_jobs group by 1")) == {
        "mail canceled": 1100,
        "mail running": 100,
        "other pending": 10,
    }
    assert await client.cancel_all(queue="mail") == 100
    assert await client.cancel_all(state=sorted(LIVE)) == 10


async def test_a_job_that_moved_on_since_it_was_found_is_not_meant_any_more(client, database):
    database.enqueue({}, {})
    worker, asked = database.worker(), []
    session = client._runtime.session()
    fetch = session.fetch

    async def meddling(query):
        rows = await fetch(query)
        if not asked:
            database.claim(worker, limit=1)
        asked.append(query.name)
        return rows

    session.fetch = meddling
    assert await client.cancel_all(kind="work", state="pending") == 1
    assert sorted(row[0] for row in database.sql("select state from tenure.all_jobs")) == ["canceled", "running"]


async def test_canceling_all_needs_a_filter_that_can_fit(client, database):
    database.enqueue({})
    with pytest.raises(ConfigError, match="needs a filter"):
        await client.cancel_all()
    for finished in FINISHED:
        with pytest.raises(ConfigError, match="is over"):
            await client.cancel_all(state=finished)
    with pytest.raises(ConfigError, match="unknown"):
        await client.cancel_all(colour="red")
    assert json.dumps(database.sql("select state from tenure.jobs")) == '[["pending"]]'
