"""Runs that end before they are done, in every executor: timeouts, cancellation, shutdown, and processes that die."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from tenure import JobCanceled, JobStarted
from tests.manager.worker_helpers import alive, ended
from tests.waiting import until
from tests.worker.handlers import EXECUTORS, HURRIED, JOBS, PROCESSES, Order, notes
from tests.worker.shared_worker import failure

pytestmark = pytest.mark.asyncio(loop_scope="module")

everywhere = pytest.mark.parametrize("executor", EXECUTORS)
in_processes = pytest.mark.parametrize("executor", PROCESSES)


async def begun(folder, runs=1):
    return await until(lambda: [entry for entry in notes(folder) if entry.get("event") == "start"][runs - 1 :])


def reasons(folder):
    return [entry["reason"] for entry in notes(folder) if entry.get("event") == "end"]


@everywhere
async def test_a_kind_with_a_timeout_runs_no_longer(shared_worker, executor, tmp_path):
    handle = await HURRIED[executor].enqueue(Order(act="wait", folder=str(tmp_path)))
    failed = await failure(handle)
    assert (failed.state, failed.error_type) == ("dead_letter", "TimeoutError")
    assert "timed out" in failed.message
    assert shared_worker.incidents(handle) == ["timed_out"]
    if notes(tmp_path):  # a process may not even have been ready
        assert reasons(tmp_path) == ["timeout"]


@everywhere
async def test_a_call_may_have_its_own_time_limit_and_a_timeout_is_tried_again(shared_worker, executor, tmp_path):
    await (await JOBS[executor].enqueue(Order(act="give"))).result("30s")  # from here on a process stands ready
    handle = await JOBS[executor].using(timeout="900ms").enqueue(Order(act="wait", folder=str(tmp_path)))
    failed = await failure(handle)
    assert failed.message == f"timed out: {executor}_job may run for 0:00:00.900000"
    assert shared_worker.incidents(handle) == ["timed_out", "timed_out"]
    assert set(reasons(tmp_path)) == {"timeout"}


@everywhere
async def test_a_running_job_that_is_canceled_learns_why_and_ends(shared_worker, executor, tmp_path):
    handle = await JOBS[executor].enqueue(Order(act="wait", folder=str(tmp_path)))
    [entry] = await begun(tmp_path)
    assert await handle.cancel("changed my mind", by="alice")
    with pytest.raises(JobCanceled, match="changed my mind"):
        await handle.result("30s")
    await until(lambda: reasons(tmp_path), is_=["canceled"])
    if executor in PROCESSES:
        await until(lambda: not alive(entry["pid"]))
    status = await handle.status()
    assert (status.state, status.output) == ("canceled", None)


@everywhere
async def test_a_job_that_runs_when_its_worker_leaves_is_requeued_for_free(shared_worker, executor, tmp_path):
    async with shared_worker.another_worker(queues=[f"leaving {executor}"]) as worker:
        handle = await JOBS[executor].using(queue=f"leaving {executor}").enqueue(Order(act="wait", folder=str(tmp_path)))
        [entry] = await begun(tmp_path)
        await worker.stop(0.1)
    status = await handle.status()
    assert (status.state, status.attempt, status.crashes, status.error) == ("pending", 0, 0, None)
    assert shared_worker.incidents(handle) == ["requeued"]
    assert reasons(tmp_path) == ["shutdown"]
    if executor in PROCESSES:
        assert not alive(entry["pid"])


@pytest.mark.parametrize("executor", EXECUTORS[:3])
async def test_a_worker_that_leaves_lets_its_jobs_finish(shared_worker, executor, tmp_path):
    async with shared_worker.another_worker(queues=[f"patient {executor}"]) as worker:
        handle = (
            await JOBS[executor].using(queue=f"patient {executor}").enqueue(Order(act="wait_for_release", folder=str(tmp_path)))
        )
        await begun(tmp_path)
        stopping = asyncio.create_task(worker.stop("20s"))
        (tmp_path / "release").touch()
        await stopping
    assert (await handle.status()).state == "completed"


@in_processes
async def test_a_worker_may_leave_while_a_process_for_its_job_is_being_started(shared_worker, executor, tmp_path):
    started, queue = asyncio.Event(), f"in a hurry {executor}"
    async with shared_worker.another_worker(queues=[queue]) as worker:
        shared_worker.app.on(JobStarted)(lambda event: event.queue == queue and started.set())
        handle = await JOBS[executor].using(queue=queue).enqueue(Order(act="wait", folder=str(tmp_path)))
        await started.wait()
        await worker.stop(0)
    status = await handle.status()
    assert (status.state, status.attempt, status.crashes) == ("pending", 0, 0)
    assert shared_worker.sql("select count(*) from tenure.workers where queues ? %s", queue) == [(0,)]


@pytest.mark.parametrize(
    ("executor", "act", "cause"),
    [
        pytest.param("process", "exit_at_once", "exit code 0", marks=pytest.mark.slow),
        ("process_async", "kill_itself", "signal SIGKILL"),
    ],
)
async def test_a_job_whose_process_dies_three_times_is_dead_lettered_and_harms_no_neighbour(
    shared_worker, executor, act, cause, tmp_path
):
    neighbour = await JOBS[executor].enqueue(Order(act="wait_for_release", folder=str(tmp_path)))
    [neighbour_run] = await begun(tmp_path)

    handle = await JOBS[executor].enqueue(Order(act=act, folder=str(tmp_path)))
    assert (await failure(handle)).state == "dead_letter"
    status = await handle.status()
    assert status.error == f"quarantined: its process died 3 times while running it, the last time: {cause}"
    assert (status.attempt, status.crashes) == (0, 3)
    assert shared_worker.incidents(handle) == ["crashed"] * 3
    died = [entry for entry in notes(tmp_path) if "event" not in entry]
    assert [entry["attempt"] for entry in died] == [1, 1, 1]
    assert len({entry["pid"] for entry in died} | {neighbour_run["pid"]}) == 4

    (tmp_path / "release").touch()
    await neighbour.result("30s")
    status = await neighbour.status()
    assert (status.attempt, status.crashes, status.fence) == (1, 0, 1)


async def test_a_process_that_dies_is_missed_at_once_and_takes_along_what_it_forked(shared_worker, tmp_path):
    handle = await JOBS["process"].enqueue(Order(act="die_before_a_child", folder=str(tmp_path)))
    try:
        await until(lambda: shared_worker.incidents(handle)[:1], is_=["crashed"])
    finally:
        shared_worker.sql("delete from tenure.jobs where id = %s", handle.id)
    await ended(*(entry["forked"] for entry in notes(tmp_path)), within=20)


@in_processes
async def test_a_signal_to_all_processes_of_a_service_spends_no_attempt(shared_worker, executor, tmp_path):
    """systemd sends SIGTERM to everything in the control group; what it means is for the worker to decide."""
    handle = await JOBS[executor].enqueue(Order(act="wait_for_release", folder=str(tmp_path)))
    [entry] = await begun(tmp_path)
    os.kill(entry["pid"], signal.SIGTERM)
    (tmp_path / "release").touch()
    await handle.result("30s")
    assert (await handle.status()).attempt == 1
    assert "failed" not in shared_worker.incidents(handle)
