"""What a client decides is an event in its own process."""

from __future__ import annotations

import pytest

from tenure import ConfigError, JobDeleted, JobReplayed, JobRetried, QueuePaused, QueueResumed, Tenure, events
from tenure import JobCanceled as CanceledError
from tenure.events import JobCanceled
from tenure.model import events as defined
from tenure.store import jobs
from tests.store.forged_jobs import change_state


@pytest.fixture
def heard(app):
    told = []
    app.on()(told.append)
    return told


async def test_a_cancellation(client, database, heard):
    waiting, running = database.enqueue({}, {})
    worker = database.worker()
    database.sql("update tenure.jobs set priority = 100 where id = %s", running)
    assert database.claim(worker, limit=1).ids == [running]
    assert await client.cancel(waiting, running, reason="no need", by="ann") == 2
    assert {(str(event.job_id), event.kind, event.reason, event.by, event.ran) for event in heard} == {
        (waiting, "work", "no need", "ann", False),
        (running, "work", "no need", "ann", True),
    }
    assert {type(event) for event in heard} == {JobCanceled}
    assert await client.cancel(waiting) == 0
    assert len(heard) == 2


async def test_a_retry_of_a_live_job_and_of_a_finished_one(client, database, heard):
    [job_id] = database.enqueue({"delay": 3600})
    await client.retry(job_id, by="ann")
    await client.retry(job_id)  # it is pending already
    claim = database.claim(database.worker())
    database.run(jobs.finish(claim.finished()))
    new_id = await client.retry(job_id)
    assert await client.retry(job_id) == new_id
    assert [(type(event), str(event.job_id), event.retry_of and str(event.retry_of), event.by) for event in heard] == [
        (JobRetried, job_id, None, "ann"),
        (JobRetried, str(new_id), job_id, None),
    ]


async def test_a_replay_and_a_deletion(client, database, heard):
    [job_id] = database.enqueue({})
    change_state(database.sql, "dead_letter")
    await client.replay(job_id, by="ann")
    await client.delete(job_id)
    assert [(type(event), str(event.job_id), event.kind) for event in heard] == [
        (JobReplayed, job_id, "work"),
        (JobDeleted, job_id, "work"),
    ]
    assert heard[0].by == "ann"


async def test_a_pause(client, database, heard):
    await client.pause("mail", reason="too many", by="ann")
    assert await client.resume("mail")
    assert not await client.resume("mail")
    assert heard == [QueuePaused(queue="mail", reason="too many", by="ann"), QueueResumed(queue="mail")]


def test_the_error_of_the_same_name_is_distinguished_from_the_event():
    with pytest.raises(ConfigError, match=r"the event of that name is tenure\.events\.JobCanceled"):
        Tenure().on(CanceledError)(print)


def test_all_events_can_be_imported_from_one_place():
    known = {name for name, value in vars(defined).items() if isinstance(value, type) and issubclass(value, defined.Event)}
    assert set(events.__all__) == known
