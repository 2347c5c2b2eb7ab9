"""A run is settled once, by the holder of its claim, or not at all."""

from __future__ import annotations

import json

import pytest

from tenure.store import jobs
from tests.store.desk import Claim, Desk
from tests.store.locks import meanwhile, waits_for_a_lock

SETTLE = {
    "completed": lambda desk, claim: desk.run(jobs.finish(claim.outcomes(output=1))),
    "failed": lambda desk, claim: desk.run(jobs.finish(claim.outcomes(state="failed", error="no"))),
    "canceled": lambda desk, claim: desk.run(jobs.finish(claim.outcomes(state="canceled", error="no"))),
    "retry": lambda desk, claim: desk.run(jobs.move(claim.outcomes(state="retry", delay=5, error="oh"))),
    "scheduled": lambda desk, claim: desk.run(jobs.move(claim.outcomes(state="scheduled", delay=5, refund=1))),
    "pending": lambda desk, claim: desk.run(jobs.move(claim.outcomes(state="pending", refund=1))),
    "dead_letter": lambda desk, claim: desk.run(jobs.move(claim.outcomes(state="dead_letter", error="oh"))),
}


def snapshot(desk: Desk) -> list[tuple[object, ...]]:
    return desk.sql("select row_to_json(a)::text from tenure.all_jobs a order by a.id")


def claimed(desk: Desk, count: int = 1) -> Claim:
    desk.enqueue(*({} for _ in range(count)))
    return desk.claim(desk.worker())


@pytest.mark.parametrize("state", SETTLE)
def test_the_holder_settles_its_run(desk, state):
    claim = claimed(desk)
    assert [row[:2] for row in SETTLE[state](desk, claim)] == [(claim.ids[0], False)]
    job = desk.job(claim.ids[0])
    assert job["state"] == state
    assert job["fence"] == 1
    assert job["attempt"] == (0 if state in ("scheduled", "pending") else 1)
    assert (job["run_at"] is not None) == (state in ("retry", "scheduled"))
    finished = state in ("completed", "failed", "canceled")
    assert desk.sql("select count(*) from tenure.jobs") == [(0 if finished else 1,)]
    assert desk.sql("select count(*) from tenure.history") == [(1 if finished else 0,)]
    assert (job["claim_id"] is not None) == finished


@pytest.mark.parametrize("state", SETTLE)
def test_a_claim_that_never_was_settles_nothing(desk, state):
    claim = claimed(desk)
    before = snapshot(desk)
    stale = Claim("00000000-0000-4000-8000-000000000000", claim.worker_id, claim.signals, claim.jobs)
    assert SETTLE[state](desk, stale) == []
    assert snapshot(desk) == before


@pytest.mark.parametrize("state", SETTLE)
def test_a_run_whose_job_came_back_settles_nothing(desk, state):
    claim = claimed(desk)
    desk.condemn(claim.worker_id)
    desk.return_jobs()
    before = snapshot(desk)
    assert SETTLE[state](desk, claim) == []
    assert snapshot(desk) == before


@pytest.mark.parametrize("state", SETTLE)
def test_a_run_whose_job_is_held_by_another_settles_nothing(desk, state):
    claim = claimed(desk)
    desk.condemn(claim.worker_id)
    desk.return_jobs()
    successor = desk.claim(desk.worker())
    before = snapshot(desk)
    assert SETTLE[state](desk, claim) == []
    assert snapshot(desk) == before
    assert [row[:2] for row in SETTLE[state](desk, successor)] == [(claim.ids[0], False)]


@pytest.mark.parametrize("state", SETTLE)
async def test_a_run_whose_job_is_taken_over_while_it_settles_changes_nothing(dsn, desk, other, state):
    """It has seen its own claim, and waits for the row."""
    claim = claimed(desk)
    desk.condemn(claim.worker_id)
    with Desk(dsn) as third:
        with other.connection.transaction():
            other.return_jobs()
            successor = other.claim(other.worker())
            assert successor.ids == claim.ids
            settled = meanwhile(lambda: SETTLE[state](third, claim))
            await waits_for_a_lock(desk)
        assert settled() == []
    assert [row[:2] for row in SETTLE[state](desk, successor)] == [(claim.ids[0], False)]


@pytest.mark.parametrize("state", SETTLE)
def test_the_same_worker_cannot_settle_by_an_older_claim_of_its_own(desk, state):
    claim = claimed(desk)
    desk.run(jobs.move(claim.outcomes(state="pending", refund=1)))
    again = desk.claim(claim.worker_id)
    assert again.ids == claim.ids
    before = snapshot(desk)
    assert SETTLE[state](desk, claim) == []
    assert snapshot(desk) == before


@pytest.mark.parametrize("state", SETTLE)
def test_a_deleted_job_stays_deleted(desk, state):
    claim = claimed(desk)
    desk.sql("delete from tenure.jobs")
    assert SETTLE[state](desk, claim) == []
    assert snapshot(desk) == []


@pytest.mark.parametrize("state", SETTLE)
def test_a_second_settling_by_the_same_claim_does_nothing(desk, state):
    claim = claimed(desk)
    SETTLE[state](desk, claim)
    before = snapshot(desk)
    assert SETTLE[state](desk, claim) == []
    assert snapshot(desk) == before


@pytest.mark.parametrize("statement", [jobs.finish, jobs.move])
def test_one_stale_run_in_a_group_does_not_hold_up_the_others(desk, statement):
    claim = claimed(desk, 3)
    state = "failed" if statement is jobs.finish else "dead_letter"
    runs = [{"id": job_id, "claim_id": claim.id, "state": state} for job_id in claim.ids]
    runs[1]["claim_id"] = claim.worker_id
    settled = {row[0] for row in desk.run(statement(json.dumps(runs)))}
    assert settled == {claim.ids[0], claim.ids[2]}
    assert desk.job(claim.ids[1])["state"] == "running"


def test_the_fence_grows_with_every_claim_and_never_goes_back(desk):
    [job_id] = desk.enqueue({"max_attempts": 10})
    fences = []
    for state in ("retry", "pending", "scheduled", "returned", "dead_letter", "completed"):
        worker = desk.worker()
        desk.sql("update tenure.jobs set state = 'pending', run_at = null")
        claim = desk.claim(worker)
        fences.append(claim.jobs[0]["fence"])
        if state == "returned":
            desk.condemn(worker)
            desk.return_jobs()
        else:
            SETTLE[state](desk, claim)
        fences.append(desk.job(job_id)["fence"])
    assert fences == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]


def test_what_was_settled_by_this_very_claim_is_found_again(desk):
    """After an answer that was lost with its connection."""
    claim = claimed(desk, 3)
    group = json.loads(claim.outcomes(output=None))
    desk.run(jobs.finish(json.dumps(group[:2])))
    strange = {**group[1], "claim_id": claim.worker_id}
    assert {row[0] for row in desk.run(jobs.find_settled(json.dumps(group)))} == set(claim.ids[:2])
    assert desk.run(jobs.find_settled(json.dumps([strange]))) == []


def test_output_error_and_input_stand_in_history(desk):
    desk.enqueue({"input": {"n": 1}, "queue": "mail", "priority": 7, "capability": "smtp"})
    claim = desk.claim(desk.worker(), queues=["mail"], capabilities=["smtp"])
    desk.run(jobs.finish(claim.outcomes(output={"a": [1, None]})))
    job = desk.job(claim.ids[0])
    assert (job["input"], job["output"], job["error"]) == ({"n": 1}, {"a": [1, None]}, None)
    assert (job["queue"], job["priority"], job["capability"]) == ("mail", 7, "smtp")
    assert job["enqueued_at"] <= job["started_at"] <= job["finished_at"]


def test_runs_that_are_no_longer_ours_are_told_with_the_reason(desk):
    claim = claimed(desk, 5)
    ours, taken, deleted, completed, canceled = claim.ids
    desk.sql("update tenure.jobs set claim_id = gen_random_uuid() where id = %s", taken)
    desk.sql("delete from tenure.jobs where id = %s", deleted)
    for job_id, state in ((completed, "completed"), (canceled, "canceled")):
        desk.run(jobs.finish(json.dumps([{"id": job_id, "claim_id": claim.id, "state": state}])))
    told = {job_id: reason for job_id, _, reason in desk.run(jobs.check_claims(claim.outcomes()))}
    assert told == {
        taken: "taken_by_another_worker",
        deleted: "not_found",
        completed: "already_completed",
        canceled: "canceled",
    }
    assert ours not in told


def test_a_requeued_job_keeps_its_position_and_its_queue_is_announced(desk):
    claim = claimed(desk)
    position = claim.jobs[0]["position"]
    desk.run(jobs.move(claim.outcomes(state="pending", refund=1)))
    again = desk.claim(claim.worker_id)
    assert again.jobs[0]["position"] == position
    assert again.signals.returns == {"default": 1}
