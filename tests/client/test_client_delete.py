"""Deleting: wholly, or not at all."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID, uuid4

import pytest

from tenure import Tenure
from tenure.model.errors import JobNotFound, NotPossible
from tenure.store import jobs
from tests.client.listening import notified, sent_statements
from tests.store.database import Database
from tests.store.forged_jobs import change_state
from tests.waiting import until

TRACES = ("jobs", "history", "keys", "progress", "logs", "incidents", "watches")
NOTHING: dict[str, set[str]] = {table: set() for table in TRACES}


def leave_traces(database: Database, job_id: str) -> None:
    database.sql("insert into tenure.progress (job_id, fence, percent) values (%s, 1, 50)", job_id)
    database.sql("insert into tenure.logs (job_id, fence, first_line, last_line, lines) values (%s, 1, 1, 1, '[]')", job_id)
    database.sql("insert into tenure.incidents (job_id, what) values (%s, 'failed'), (%s, 'snoozed')", job_id, job_id)
    database.run(jobs.watch(job_id, 60.0))


def traces(database: Database) -> dict[str, set[str]]:
    columns = {"jobs": "id", "history": "id"}
    return {
        table: {str(row[0]) for row in database.sql(f"select {columns.get(table, 'job_id')} from tenure.{table}")}
        for table in TRACES
    }


async def test_nothing_is_left_of_a_deleted_job_and_all_of_its_neighbours(client, database):
    done, kept_done = database.enqueue({"key": "a", "key_for": "forever"}, {"key": "b", "key_for": "forever"})
    database.run(jobs.finish(database.claim(database.worker()).finished()))
    live, kept_live = database.enqueue({"key": "c", "delay": 60}, {"key": "d", "delay": 60})
    for job_id in (done, kept_done, live, kept_live):
        leave_traces(database, job_id)
    assert await client.delete(done, live, uuid4(), live) == 2
    assert traces(database) == {
        "jobs": {kept_live},
        "history": {kept_done},
        **{table: {kept_done, kept_live} for table in TRACES[2:]},
    }
    with pytest.raises(JobNotFound):
        await client.delete(done, live)
    assert database.enqueue({"key": "a", "key_for": "forever"}) != [done], "the key is free again"


@pytest.mark.parametrize("state", ["pending", "scheduled", "retry", "dead_letter", "blocked", "waiting"])
async def test_a_job_that_does_not_run_is_deleted_in_every_state(client, database, state):
    [job_id] = database.enqueue({})
    change_state(database.sql, state, run_at="now")
    assert await client.delete(job_id) == 1
    assert traces(database) == NOTHING


async def test_a_key_that_another_job_owns_by_now_stays(client, database):
    [first] = database.enqueue({"key": "a", "key_for": "live"})
    database.run(jobs.finish(database.claim(database.worker()).finished()))
    [second] = database.enqueue({"key": "a", "key_for": "live"})
    assert await client.delete(first) == 1
    assert traces(database)["keys"] == {second}


async def test_children_outlive_their_parent(client, database):
    [parent] = database.enqueue({})
    child = database.enqueue({"parent": parent})[0]
    assert await client.delete(parent) == 1
    assert str(database.job(child)["parent_id"]) == parent


async def test_a_running_job_is_refused_and_then_nothing_is_deleted(client, database):
    running, pending = database.enqueue({}, {"queue": "later"})
    done = database.enqueue({"queue": "past"})[0]
    database.claim(database.worker())
    database.run(jobs.finish(database.claim(database.worker(), queues=["past"]).finished()))
    with pytest.raises(NotPossible, match="is running: cancel first") as caught:
        await client.delete(pending, running, done)
    assert caught.value.ids == [UUID(running)]
    assert traces(database)["jobs"] == {running, pending}
    assert traces(database)["history"] == {done}


async def test_force_deletes_a_running_job_and_notifies_its_worker(client, database, other):
    [job_id] = database.enqueue({})
    claim = database.claim(database.worker())
    leave_traces(database, job_id)
    other.sql("listen tenure")
    assert await client.delete(job_id, force=True) == 1
    assert traces(database) == NOTHING
    assert await notified(other, 2) == {f"lost {job_id}", f"ended {job_id}"}
    assert database.run(jobs.finish(claim.finished())) == []
    notes = json.dumps([{"id": job_id, "claim_id": claim.id, "percent": 50}])
    assert database.run(jobs.write_updates(notes, 10)) == []
    assert traces(database) == NOTHING


async def test_a_job_that_is_just_being_settled_is_deleted_from_where_it_then_is(client, database, other):
    [job_id] = database.enqueue({})
    claim = database.claim(database.worker())
    asked = sent_statements(client)
    with other.connection.transaction():
        other.run(jobs.finish(claim.finished()))
        deleting = asyncio.create_task(client.delete(job_id, force=True))
        await until(lambda: len(asked) >= 2)
    assert await deleting == 1
    assert traces(database) == NOTHING


async def test_a_job_that_is_just_being_claimed_is_refused(client, database, other):
    worker = database.worker()
    [job_id] = database.enqueue({})
    asked = sent_statements(client)
    with other.connection.transaction():
        other.claim(worker)
        deleting = asyncio.create_task(client.delete(job_id))
        await until(lambda: len(asked) >= 2)
    with pytest.raises(NotPossible):
        await deleting
    assert database.job(job_id)["state"] == "running"


async def test_many_are_deleted_in_batches(client, database):
    ids = database.enqueue(*[{} for _ in range(1201)])
    assert await client.delete(*ids) == 1201
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


def test_code_without_a_loop_deletes_too(dsn, database):
    app = Tenure(dsn)
    assert app.client().delete_sync(*database.enqueue({})) == 1
    app._portal.close()
