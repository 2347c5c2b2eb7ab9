"""What a handler may do and how its job ends, the same in every executor: loop, thread, and process with either function."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tenure import JobCanceled
from tests.waiting import until
from tests.worker.handlers import EXECUTORS, JOBS, LATER, Order, Receipt
from tests.worker.shared_worker import failure

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.parametrize("executor", EXECUTORS)]


async def test_input_and_output_are_typed(shared_worker, executor):
    order = Order(act="give", text="naïve ☃ 😀", number=41)
    handle = await JOBS[executor].enqueue(order)
    assert await handle.result("30s") == Receipt(number=42, order=order)
    status = await handle.status()
    assert (status.state, status.attempt, status.fence, status.error) == ("completed", 1, 1, None)


@pytest.mark.parametrize("how", ["returns", "raises"])
async def test_a_snoozed_job_waits_and_has_spent_no_attempt(shared_worker, executor, how):
    handle = await JOBS[executor].enqueue(Order(act="decide", text=f"{how} Snooze"))
    status = await settled(handle)
    assert (status.state, status.attempt, status.error) == ("scheduled", 0, None)
    assert status.run_at - status.started_at > timedelta(minutes=59)
    assert shared_worker.incidents(handle) == ["snoozed"]


@pytest.mark.parametrize("how", ["returns", "raises"])
async def test_a_job_snoozed_until_a_time_is_due_then_and_has_spent_no_attempt(shared_worker, executor, how):
    handle = await JOBS[executor].enqueue(Order(act="decide", text=f"{how} Snooze_until"))
    status = await settled(handle)
    assert (status.state, status.attempt, status.run_at) == ("scheduled", 0, LATER)
    assert shared_worker.incidents(handle) == ["snoozed"]


async def settled(handle):
    """The job after its first run, wherever it stands."""

    async def look():
        status = await handle.status()
        return status if status.fence and status.state != "running" else None

    return await until(look)


@pytest.mark.parametrize("how", ["returns", "raises"])
async def test_a_job_that_fails_by_decision_is_not_tried_again(shared_worker, executor, how):
    handle = await JOBS[executor].enqueue(Order(act="decide", text=f"{how} Fail"))
    failed = await failure(handle)
    assert (failed.state, failed.message, failed.error_type) == ("failed", "not today", None)
    assert (await handle.status()).attempt == 1


@pytest.mark.parametrize("how", ["returns", "raises"])
async def test_a_job_may_cancel_itself(shared_worker, executor, how):
    handle = await JOBS[executor].enqueue(Order(act="decide", text=f"{how} Cancel"))
    with pytest.raises(JobCanceled) as canceled:
        await handle.result("30s")
    assert canceled.value.reason == "no need"
    assert (await handle.status()).state == "canceled"


async def test_a_failed_job_is_retried_and_then_dead_lettered_with_its_traceback(shared_worker, executor):
    handle = await JOBS[executor].enqueue(Order(act="fail"))
    failed = await failure(handle)
    assert (failed.state, failed.error_type, failed.message) == ("dead_letter", "ValueError", "boom in attempt 2")
    assert 'raise ValueError(f"boom in attempt {ctx.attempt}")' in failed.traceback
    assert "handlers.py" in failed.traceback
    head, first, *_ = failed.traceback.splitlines()
    assert head == "Traceback (most recent call last):"
    assert "/tenure/" not in first.partition("/src/")[2], "it begins with the frames through which the handler was called"
    assert shared_worker.incidents(handle) == ["failed", "failed"]
    assert (await handle.status()).attempt == 2


async def test_the_retry_policy_is_asked_which_errors_are_final(shared_worker, executor):
    handle = await JOBS[executor].enqueue(Order(act="give_up"))
    failed = await failure(handle)
    assert (failed.state, failed.error_type, failed.message) == ("dead_letter", "Final", "for good")
    assert (await handle.status()).attempt == 1


async def test_a_call_may_have_its_own_number_of_attempts(shared_worker, executor):
    handle = await JOBS[executor].using(max_attempts=1).enqueue(Order(act="fail"))
    assert (await failure(handle)).message == "boom in attempt 1"


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
async def test_what_is_meant_to_end_a_program_ends_only_the_job(shared_worker, executor, name):
    handle = await JOBS[executor].enqueue(Order(act="raise_named", text=name))
    failed = await failure(handle)
    assert (failed.state, failed.error_type) == ("dead_letter", name)
    assert (await handle.status()).crashes == 0
    assert await (await JOBS[executor].enqueue(Order(act="give"))).result("30s")


async def test_a_cancellation_that_was_not_requested_is_an_error(shared_worker, executor):
    handle = await JOBS[executor].enqueue(Order(act="raise_named", text="CancelledError"))
    failed = await failure(handle)
    assert (failed.state, failed.error_type) == ("dead_letter", "CancelledError")


async def test_stop_iteration_is_an_error_like_any_other(shared_worker, executor):
    handle = await JOBS[executor].enqueue(Order(act="raise_named", text="StopIteration"))
    failed = await failure(handle)
    assert failed.state == "dead_letter"
    assert "StopIteration" in failed.traceback
    assert (await handle.status()).attempt == 2


async def test_an_exception_that_cannot_be_printed_is_reported_by_its_name(shared_worker, executor):
    handle = await JOBS[executor].enqueue(Order(act="raise_named", text="Awkward"))
    failed = await failure(handle)
    assert (failed.state, failed.error_type) == ("dead_letter", "Awkward")
    assert "raise {error.__name__: error for error in known}" in failed.traceback


async def test_a_result_that_is_not_json_is_an_error_of_the_job(shared_worker, executor):
    handle = await JOBS[executor].enqueue(Order(act="return_non_json"))
    failed = await failure(handle)
    assert (failed.state, failed.error_type) == ("dead_letter", "InvalidOutput")
    assert f"the result of job '{executor}_job' does not fit its annotation" in failed.message


async def test_a_handler_knows_its_run_and_its_progress_and_log_lines_are_stored(shared_worker, executor):
    meta = {"trace": "t1", "schedule": {"name": "of the user", "for": "2026-03-03T12:00:00+00:00", "late": True}}
    handle = await JOBS[executor].using(auth={"user": 7}, meta=meta).enqueue(Order(act="tell"))
    facts = json.loads((await handle.result("30s")).order.text)
    status = await handle.status()
    assert facts == {
        "job_id": str(handle.id),
        "kind": f"{executor}_job",
        "queue": "default",
        "attempt": 2,
        "max_attempts": 2,
        "fence": 2,
        "worker_id": str(status.worker_id),
        "is_retry": True,
        "is_last_attempt": True,
        "auth": {"user": 7},
        "meta": meta,
        "schedule": None,
        "input": "tell",
        "aborted": False,
    }
    progress = await handle.progress()
    assert (progress.percent, progress.message) == (25, "a quarter")
    said = [(line["level"], line["message"], line.get("fields")) for line in shared_worker.lines(handle)]
    assert said == [("info", "first", {"size": 3, "place": "here"}), ("warning", "second", None)] * 2


async def test_a_job_enqueued_by_a_handler_knows_its_parent(shared_worker, executor):
    handle = await JOBS[executor].using(auth="alice").enqueue(Order(act="hand_on"))
    child = (await handle.result("30s")).order.text
    found = shared_worker.sql("select parent_id, auth, enqueued_by is not null from tenure.all_jobs where id = %s", child)
    assert found == [(handle.id, "alice", True)]
