"""SIGHUP: every process is replaced by one with the current code, one at a time, and no job is lost, run twice or retried."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter

import pytest

from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow

DONE, ENDED = "rolling restart done", "rolling restart failed"


async def test_under_load_no_job_is_lost_doubled_or_charged_an_attempt(start, run_log, queue):
    worker = start("--processes", "2", "--concurrency", "5")
    old = await serving(worker, 2)
    ids: list[str] = []

    async def load() -> None:
        while DONE not in worker.said:
            ids.extend(queue.add("short", 20))
            await asyncio.sleep(0.1)

    loading = asyncio.create_task(load())
    await until(lambda: {entry["pid"] for entry in run_log.entries()} == set(old))
    os.kill(worker.pid, signal.SIGHUP)
    await asyncio.wait_for(loading, 60)
    ids += queue.add("short", 20)

    await queue.completed(*ids, within=30)
    assert Counter(entry["job"] for entry in run_log.entries()) == Counter(ids)
    # Not the fence: a job whose claim was under way when its process was asked to stop is requeued before it begins.
    assert set(queue.sql("select attempt, crashes from tenure.history")) == {(1, 0)}
    await until(lambda: len(worker.children()), is_=2)
    assert set(worker.children()).isdisjoint(old)
    assert "died" not in worker.said


async def test_the_new_processes_have_the_new_code(start, run_log, queue, project):
    worker = start()
    await serving(worker)
    code = (project / "jobs.py").read_text()
    (project / "jobs.py").write_text(
        code + "\n@app.job(name='brand_new')\nasync def later(ctx: Context) -> int:\n    return 42\n"
    )
    [job] = queue.add("brand_new")
    await queue.completed(*queue.add("quick"))
    assert queue.of(job, "state") == ("pending",)  # no process knows its kind yet

    os.kill(worker.pid, signal.SIGHUP)

    await queue.completed(job, within=20)


async def test_code_that_cannot_be_loaded_is_reported_and_the_old_processes_continue(start, run_log, queue, project):
    worker = start("--processes", "2")
    old = await serving(worker, 2)
    good = (project / "jobs.py").read_text()
    (project / "jobs.py").write_text("def broken(:\n")

    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: ENDED in worker.said)

    assert "SyntaxError" in worker.said
    assert worker.children() == old
    await queue.completed(*queue.add("quick", 5))
    (project / "jobs.py").write_text(good)
    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: DONE in worker.said)
    await until(lambda: set(worker.children()).isdisjoint(old))


async def test_a_new_process_that_dies_at_its_start_ends_it_as_well(start, run_log, queue, project):
    worker = start()
    old = await serving(worker)
    (project / "jobs.py").write_text("import os\nos._exit(7)\n")

    os.kill(worker.pid, signal.SIGHUP)

    await until(lambda: ENDED in worker.said)
    assert worker.children() == old


async def test_a_long_job_is_not_cut_short_and_does_not_delay_the_restart(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_GRACE_SECONDS": "1"})
    [old] = await serving(worker)
    [long] = queue.add("until_released")
    await until(lambda: run_log.runs(long), is_=[1])

    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: DONE in worker.said)

    assert old in worker.children()
    await queue.completed(*queue.add("quick", 3))
    assert {entry["pid"] for entry in run_log.entries(kind="quick")}.isdisjoint({old})
    run_log.release()
    await queue.completed(long)
    assert (run_log.runs(long), queue.of(long, "fence", "crashes")) == ([1], (1, 0))
    await until(lambda: old not in worker.children())


async def test_a_shutdown_ends_a_drain_after_the_grace_period(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_GRACE_SECONDS": "1"})
    await serving(worker)
    [long] = queue.add("until_released")
    await until(lambda: run_log.runs(long), is_=[1])
    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: DONE in worker.said)

    worker.terminate()

    await until(worker.process.poll, is_=0, within=11)
    assert [entry["reason"] for entry in run_log.entries("aborted")] == ["shutdown"]
    assert queue.of(long, "state", "attempt", "crashes") == ("pending", 0, 0)


async def test_a_hang_up_to_the_whole_group_ends_no_process(start, run_log, queue):
    worker = start()
    old = await serving(worker)
    os.killpg(worker.pid, signal.SIGHUP)
    await until(lambda: DONE in worker.said)
    await until(lambda: set(worker.children()).isdisjoint(old))
    assert "died" not in worker.said


async def test_asked_twice_it_ends_with_processes_younger_than_both_wishes(start, run_log, queue):
    worker = start("--processes", "2")
    await serving(worker, 2)
    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: worker.said.count("ready: ") == 3)
    half_way = worker.children()
    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: worker.said.count(DONE) == 2, within=40)
    await until(lambda: len(worker.children()), is_=2)
    assert set(worker.children()).isdisjoint(half_way)


@pytest.mark.slow
async def test_one_that_does_not_end_when_its_drain_is_over_is_killed_and_its_job_is_not_blamed(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_DRAIN_SECONDS": "1", "TENURE_WORKERS_GRACE_SECONDS": "1"})
    [old] = await serving(worker)
    [job] = queue.add("blocks_loop_for_long")
    await until(lambda: run_log.runs(job), is_=[1])

    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: DONE in worker.said)
    await until(lambda: "did not stop in time; killing it" in worker.said)

    await until(lambda: run_log.runs(job), is_=[2])
    run_log.release()
    await queue.completed(job)
    assert (queue.of(job, "crashes", "attempt"), old in worker.children()) == ((0, 1), False)


async def test_a_crash_during_a_drain_is_a_crash(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_GRACE_SECONDS": "1"})
    [old] = await serving(worker)
    [job] = queue.add("until_released")
    await until(lambda: run_log.runs(job), is_=[1])
    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: DONE in worker.said)

    os.kill(old, signal.SIGKILL)

    await until(lambda: run_log.runs(job), is_=[2])
    run_log.release()
    await queue.completed(job)
    assert queue.of(job, "crashes", "attempt") == (1, 1)
