"""kill -9 of processes that run jobs: the jobs are requeued, fast and without spending an attempt."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from pathlib import Path

import pytest

from tests.manager.worker_helpers import alive, ended, serving
from tests.waiting import until

log = logging.getLogger(__name__)

BACK_ON_ANOTHER_MACHINE = 20.0
BEFORE_THE_LEASE_EXPIRES = 12.0


@pytest.mark.parametrize("processes", [1, 2])
async def test_jobs_of_a_killed_child_run_again_long_before_their_lease_expires(start, run_log, queue, processes):
    long_lease = {"TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": "60"}
    worker = start("--processes", str(processes), "--concurrency", "10", env=long_lease)
    await serving(worker, processes)
    ids = queue.add("until_released", 8)
    await until(lambda: len(run_log.entries()), is_=8)
    victim = run_log.entries()[0]["pid"]
    struck = [entry["job"] for entry in run_log.entries(pid=victim)]

    os.kill(victim, signal.SIGKILL)

    await until(lambda: run_log.runs(*struck), is_=[2] * len(struck), within=20)
    run_log.release()
    await queue.completed(*ids)
    assert {job: queue.of(job, "attempt", "crashes", "fence") for job in struck} == dict.fromkeys(struck, (1, 1, 2))
    assert {job: run_log.runs(job) for job in ids if job not in struck} == {job: [1] for job in ids if job not in struck}


@pytest.mark.slow
async def test_a_child_that_dies_again_and_again_is_replaced_and_leaves_nothing_open(start, queue):
    worker = start()
    await serving(worker)
    open_after = []
    for deaths in range(1, 4):
        [child] = worker.children()
        os.kill(child, signal.SIGKILL)
        await until(lambda deaths=deaths: worker.said.count("ready: "), is_=deaths + 1)
        await until(lambda: queue.worker_pids() == worker.children())
        open_after.append(open_files(worker.pid))
    assert open_after == open_after[:1] * 3


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def test_a_killed_child_is_missed_although_a_process_it_forked_lives_on(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": "600"})
    [child] = await serving(worker)
    [job] = queue.add("forks")
    [entry] = await until(run_log.entries)
    assert alive(entry["forked"])

    os.kill(child, signal.SIGKILL)

    await until(lambda: run_log.runs(job), is_=[2], within=40)  # the forked one lives for 60 s


async def test_children_do_not_outlive_their_supervisor(start, run_log, queue):
    worker = start("--processes", "2")
    children = await serving(worker, 2)
    queue.add("deaf_thread", 2)
    await until(lambda: len(run_log.entries()), is_=2)

    os.kill(worker.pid, signal.SIGKILL)

    await ended(*children, within=BEFORE_THE_LEASE_EXPIRES)


async def test_a_child_whose_loop_is_blocked_does_not_outlive_its_supervisor_either(start, run_log, queue):
    worker = start()
    [child] = await serving(worker)
    queue.add("blocks_loop_for_long")
    await until(run_log.entries)

    os.kill(worker.pid, signal.SIGKILL)

    await ended(child, within=BEFORE_THE_LEASE_EXPIRES)


@pytest.mark.slow
async def test_jobs_of_a_killed_machine_run_again_on_another_within_twenty_seconds(
    start, run_log, queue, second_queue, record_property
):
    """At default settings; both fleets at the same time, to save half of the wait."""
    follower, leader = await asyncio.gather(
        kill_machine(start, run_log, queue, leading=False),
        kill_machine(start, run_log, second_queue, leading=True),
    )
    log.info("back after %.1f s when a follower is killed, after %.1f s when the leader is", follower, leader)
    assert max(follower, leader) <= BACK_ON_ANOTHER_MACHINE


async def kill_machine(start, run_log, queue, *, leading):
    """Two workers; one dies with all jobs. Gives the seconds until the other one runs them."""
    first = start(dsn=queue.dsn)
    await until(lambda: queue.sql("select 1 from tenure.leases where name = 'reaper'"))
    second = start(dsn=queue.dsn)
    await serving(second)
    doomed, rescuer = (first, second) if leading else (second, first)
    [rescuing_child] = rescuer.children()
    os.kill(rescuing_child, signal.SIGSTOP)  # so that all jobs go to the other one
    ids = queue.add("patient", 5)
    await until(lambda: run_log.runs(*ids), is_=[1] * 5)
    os.kill(rescuing_child, signal.SIGCONT)

    killed_at = time.monotonic()
    doomed.kill()

    await until(lambda: run_log.runs(*ids), is_=[2] * 5, within=40)
    back_at = max(entry["at"] for entry in run_log.entries(fence=2, pid=rescuing_child))
    run_log.release("second_release")
    await queue.completed(*ids)
    assert {queue.of(job, "attempt", "crashes", "fence") for job in ids} == {(1, 1, 2)}
    return back_at - killed_at
