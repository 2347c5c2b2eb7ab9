"""Every call on a job that does not exist reports that; a finished job is not an error."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tenure import InvalidJobId, JobNotFound, Tenure
from tenure.store import jobs

ASKED = {
    "status": lambda client, job_id: client.handle(job_id).status(),
    "result": lambda client, job_id: client.handle(job_id).result("1s"),
    "report": lambda client, job_id: client.report(job_id),
    "explain": lambda client, job_id: client.explain(job_id),
    "cancel": lambda client, job_id: client.cancel(job_id),
    "cancel by its handle": lambda client, job_id: client.handle(job_id).cancel(),
    "retry": lambda client, job_id: client.retry(job_id),
    "replay": lambda client, job_id: client.replay(job_id),
    "delete": lambda client, job_id: client.delete(job_id),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_a_job_that_does_not_exist_is_not_found(client, asked):
    job_id = uuid4()
    with pytest.raises(JobNotFound) as missing:
        await ASKED[asked](client, job_id)
    assert missing.value.job_id == job_id


@pytest.mark.parametrize("asked", ASKED)
async def test_an_id_that_is_none_is_not_found_either(client, asked):
    with pytest.raises(JobNotFound) as missing:
        await ASKED[asked](client, "17")
    assert isinstance(missing.value, InvalidJobId)
    assert missing.value.job_id == "17"


async def test_canceling_a_finished_job_does_nothing_and_is_not_an_error(client, database):
    database.enqueue({})
    claim = database.claim(database.worker())
    database.run(jobs.finish(claim.finished()))
    [job_id] = claim.ids
    assert await client.cancel(job_id) == 0
    assert await client.handle(job_id).cancel() is False
    assert await client.replay(job_id) == 0
    assert await client.cancel(job_id, uuid4()) == 0


async def test_of_several_jobs_those_are_canceled_that_exist(client, database):
    [job_id] = database.enqueue({})
    assert await client.cancel(uuid4(), job_id) == 1


def test_code_without_a_loop_gets_the_error_too(dsn):
    app = Tenure(dsn)
    with pytest.raises(JobNotFound):
        app.client().cancel_sync(uuid4())
    app.close_sync()
