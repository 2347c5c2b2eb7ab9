"""A run is settled once, by the holder of its claim, or not at all."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from tenure.store import claims, jobs
from tests.store.database import Claim, Database, finished
from tests.store.forged_jobs import change_state, forge_claim, take_over
from tests.store.locks import meanwhile, waits_for_a_lock

SETTLE = {
    "completed": lambda database, claim: database.run(jobs.finish(claim.finished(output=1))),
    "failed": lambda database, claim: database.run(jobs.finish(claim.finished(state="failed", error="no"))),
    "canceled": lambda database, claim: database.run(jobs.finish(claim.finished(state="canceled", error="no"))),
    "retry": lambda database, claim: database.run(jobs.move(claim.outcomes(state="retry", delay=5, error="oh"))),
    "scheduled": lambda database, claim: database.run(jobs.move(claim.outcomes(state="scheduled", delay=5, refund=1))),
    "pending": lambda database, claim: database.run(jobs.move(claim.outcomes(state="pending", refund=1))),
    "dead_letter": lambda database, claim: database.run(jobs.move(claim.outcomes(state="dead_letter", error="oh"))),
}


def snapshot(database: Database) -> list[tuple[object, ...]]:
    return database.sql("select row_to_json(a)::text from tenure.all_jobs a order by a.id")


def claimed(database: Database, count: int = 1) -> Claim:
    database.enqueue(*({} for _ in range(count)))
    return database.claim(database.worker())


@pytest.mark.parametrize("state", SETTLE)
def test_the_holder_settles_its_run(database, state):
    claim = claimed(database)
    assert [row[:2] for row in SETTLE[state](database, claim)] == [(claim.ids[0], False)]
    job = database.job(claim.ids[0])
    assert job["state"] == state
    assert job["fence"] == 1
    assert job["attempt"] == (0 if state in ("scheduled", "pending") else 1)
    assert (job["run_at"] is not None) == (state in ("retry", "scheduled"))
    over = state in ("completed", "failed", "canceled")
    assert database.sql("select count(*) from tenure.jobs") == [(0 if over else 1,)]
    assert database.sql("select count(*) from tenure.history") == [(1 if over else 0,)]
    assert (job["claim_id"] is not None) == over


@pytest.mark.parametrize("state", SETTLE)
def test_a_claim_that_never_was_settles_nothing(database, state):
    claim = claimed(database)
    before = snapshot(database)
    stale = Claim("00000000-0000-4000-8000-000000000000", claim.worker_id, claim.reply, claim.jobs)
    assert SETTLE[state](database, stale) == []
    assert snapshot(database) == before


@pytest.mark.parametrize("state", SETTLE)
def test_a_run_whose_job_was_requeued_settles_nothing(database, state):
    claim = claimed(database)
    database.condemn(claim.worker_id)
    database.return_jobs()
    before = snapshot(database)
    assert SETTLE[state](database, claim) == []
    assert snapshot(database) == before


@pytest.mark.parametrize("state", SETTLE)
def test_a_run_whose_job_is_held_by_another_settles_nothing(database, state):
    claim = claimed(database)
    database.condemn(claim.worker_id)
    database.return_jobs()
    successor = database.claim(database.worker())
    before = snapshot(database)
    assert SETTLE[state](database, claim) == []
    assert snapshot(database) == before
    assert [row[:2] for row in SETTLE[state](database, successor)] == [(claim.ids[0], False)]


@pytest.mark.parametrize("state", SETTLE)
async def test_a_run_whose_job_is_taken_over_while_it_settles_changes_nothing(dsn, database, other, state):
    """It has seen its own claim, and waits for the row."""
    claim = claimed(database)
    database.condemn(claim.worker_id)
    with Database(dsn) as third:
        with other.connection.transaction():
            other.return_jobs()
            successor = other.claim(other.worker())
            assert successor.ids == claim.ids
            settled = meanwhile(lambda: SETTLE[state](third, claim))
            await waits_for_a_lock(database)
        assert settled() == []
    assert [row[:2] for row in SETTLE[state](database, successor)] == [(claim.ids[0], False)]


@pytest.mark.parametrize("state", SETTLE)
def test_the_same_worker_cannot_settle_by_an_older_claim_of_its_own(database, state):
    claim = claimed(database)
    database.run(jobs.move(claim.outcomes(state="pending", refund=1)))
    again = database.claim(claim.worker_id)
    assert again.ids == claim.ids
    before = snapshot(database)
    assert SETTLE[state](database, claim) == []
    assert snapshot(database) == before


@pytest.mark.parametrize("state", SETTLE)
def test_a_deleted_job_stays_deleted(database, state):
    claim = claimed(database)
    database.sql("delete from tenure.jobs")
    assert SETTLE[state](database, claim) == []
    assert snapshot(database) == []


@pytest.mark.parametrize("state", SETTLE)
def test_a_second_settling_by_the_same_claim_does_nothing(database, state):
    claim = claimed(database)
    SETTLE[state](database, claim)
    before = snapshot(database)
    assert SETTLE[state](database, claim) == []
    assert snapshot(database) == before


@pytest.mark.parametrize("finishing", [True, False])
def test_one_stale_run_in_a_group_does_not_hold_up_the_others(database, finishing):
    claim = claimed(database, 3)
    stale = str(uuid4())
    forge_claim(database.sql, claim.worker_id, claim.ids, claim_id=stale)
    runs = list(zip(claim.ids, (claim.id, stale, claim.id), strict=True))
    if finishing:
        query = jobs.finish(finished(runs, state="failed"))
    else:
        query = jobs.move(json.dumps([{"id": job, "claim_id": held, "state": "dead_letter"} for job, held in runs]))
    settled = {row[0] for row in database.run(query)}
    assert settled == {claim.ids[0], claim.ids[2]}
    assert database.job(claim.ids[1])["state"] == "running"


def test_the_fence_grows_with_every_claim_and_never_goes_back(database):
    [job_id] = database.enqueue({"max_attempts": 10})
    fences = []
    for state in ("retry", "pending", "scheduled", "returned", "dead_letter", "completed"):
        worker = database.worker()
        change_state(database.sql, "pending")
        claim = database.claim(worker)
        fences.append(claim.jobs[0]["fence"])
        if state == "returned":
            database.condemn(worker)
            database.return_jobs()
        else:
            SETTLE[state](database, claim)
        fences.append(database.job(job_id)["fence"])
    assert fences == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]


def test_what_was_settled_by_this_very_claim_is_found_again(database):
    """After an answer that was lost with its connection."""
    claim = claimed(database, 3)
    group = json.loads(claim.outcomes(output=None))
    database.run(jobs.finish(claim.finished(*claim.ids[:2])))
    strange = {**group[1], "claim_id": claim.worker_id}
    assert {row[0] for row in database.run(jobs.find_settled(json.dumps(group)))} == set(claim.ids[:2])
    assert database.run(jobs.find_settled(json.dumps([strange]))) == []


def test_output_error_and_input_are_in_history(database):
    database.enqueue({"input": {"n": 1}, "queue": "mail", "priority": 7, "capability": "smtp"})
    claim = database.claim(database.worker(), queues=["mail"], capabilities=["smtp"])
    database.run(jobs.finish(claim.finished(output={"a": [1, None]})))
    job = database.job(claim.ids[0])
    assert (job["input"], job["output"], job["error"]) == ({"n": 1}, {"a": [1, None]}, None)
    assert (job["queue"], job["priority"], job["capability"]) == ("mail", 7, "smtp")
    assert job["enqueued_at"] <= job["started_at"] <= job["finished_at"]


def test_runs_that_are_no_longer_ours_are_reported_with_the_reason(database):
    claim = claimed(database, 5)
    ours, taken, deleted, completed, canceled = claim.ids
    take_over(database.sql, taken)
    database.sql("delete from tenure.jobs where id = %s", deleted)
    for job_id, state in ((completed, "completed"), (canceled, "canceled")):
        database.run(jobs.finish(claim.finished(job_id, state=state)))
    told = {job_id: reason for job_id, _, reason in database.run(claims.check(claim.outcomes()))}
    assert told == {
        taken: "taken_by_another_worker",
        deleted: "not_found",
        completed: "already_completed",
        canceled: "canceled",
    }
    assert ours not in told


def test_a_requeued_job_keeps_its_position_and_its_queue_is_announced(database):
    claim = claimed(database)
    position = claim.jobs[0]["position"]
    database.run(jobs.move(claim.outcomes(state="pending", refund=1)))
    again = database.claim(claim.worker_id)
    assert again.jobs[0]["position"] == position
    assert again.reply.returns == {"default": 1}
