"""SIGTERM and SIGINT: running jobs may finish, the rest is requeued, no attempt is spent, no process is left."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tenure import StoreUnavailable
from tenure.manager import supervisor
from tests.manager.worker_helpers import SHORT_LEASE, serving
from tests.waiting import until

AFTER_GRACE = 20.0  # less than the grace itself
SHORT_GRACE = {"TENURE_WORKERS_GRACE_SECONDS": "1"}


async def exit_code(worker, within):
    await until(lambda: worker.process.poll() is not None, within=within)
    return worker.process.returncode


def left(queue):
    """Rows of workers, duties held."""
    held = queue.sql("select name from tenure.leases where expires_at > clock_timestamp()")
    return queue.sql("select id, died_at, died_how from tenure.workers"), held


def complaints(worker):
    """A stop in order is silent."""
    return [line for line in worker.said.splitlines() if re.search(" (WARNING|ERROR|CRITICAL) ", line) and "doctor" not in line]


def nothing_left(queue):
    return left(queue) == ([], [])


async def running(start, run_log, queue, *kinds, **more):
    """A worker with one job of each of these kinds under way."""
    worker = start(**more)
    await serving(worker)
    ids = [job for kind in kinds for job in queue.add(kind)]
    await until(lambda: len(run_log.entries()), is_=len(kinds))
    return worker, ids


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_job_that_ends_within_the_grace_is_finished_and_the_exit_is_clean(start, run_log, queue, number):
    worker, ids = await running(start, run_log, queue, "until_released", "until_released_in_thread")

    os.kill(worker.pid, number)
    await until(lambda: "stopping; waiting for running jobs" in worker.said)
    [late] = queue.add("quick")
    run_log.release()

    assert await exit_code(worker, within=AFTER_GRACE) == 0
    assert worker.said.splitlines()[-1].endswith(" stopped")
    assert queue.states(*ids) == {"completed": 2}
    assert queue.of(late, "state", "attempt") == ("pending", 0)
    assert nothing_left(queue)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_whole_process_group_gives_the_same_grace(start, run_log, queue, number):
    """As systemd does by default, a terminal at Ctrl-C, and many a container runtime."""
    worker, [job] = await running(start, run_log, queue, "until_released", env=SHORT_LEASE)
    [(heartbeat,)] = queue.sql("select heartbeat_at from tenure.workers")

    os.killpg(worker.pid, number)
    await until(lambda: queue.sql("select heartbeat_at from tenure.workers") != [(heartbeat,)])  # renewed, or gone
    run_log.release()

    assert await exit_code(worker, within=AFTER_GRACE) == 0
    assert (queue.of(job, "state", "fence"), run_log.entries("aborted")) == (("completed", 1), [])


async def test_jobs_beyond_the_grace_are_aborted_and_requeued_without_spending_an_attempt(start, run_log, queue):
    worker, ids = await running(start, run_log, queue, "until_released", "until_released_in_thread", env=SHORT_GRACE)

    worker.terminate()

    assert await exit_code(worker, within=1 + AFTER_GRACE) == 0
    assert {entry["kind"]: entry["reason"] for entry in run_log.entries("aborted")} == {
        "until_released": "shutdown",
        "until_released_in_thread": "shutdown",
    }
    assert {queue.of(job, "state", "attempt", "crashes", "error") for job in ids} == {("pending", 0, 0, None)}
    assert nothing_left(queue)


async def test_an_aborted_coroutine_may_await_its_clean_up(start, run_log, queue):
    worker, ids = await running(start, run_log, queue, "tidies_up", env=SHORT_GRACE)

    worker.terminate()

    assert await exit_code(worker, within=1 + AFTER_GRACE) == 0
    assert [entry["reason"] for entry in run_log.entries("tidied")] == ["shutdown"]
    assert queue.of(*ids, "state", "attempt") == ("pending", 0)


async def test_a_second_signal_ends_the_grace_at_once(start, run_log, queue):
    worker, ids = await running(start, run_log, queue, "until_released")

    worker.terminate()
    await until(lambda: "signal again to stop now" in worker.said)
    worker.terminate()

    assert await exit_code(worker, within=AFTER_GRACE) == 0
    assert queue.of(*ids, "state", "attempt", "crashes") == ("pending", 0, 0)
    assert nothing_left(queue)


async def test_a_thread_that_does_not_listen_does_not_stop_the_exit(start, run_log, queue):
    worker, ids = await running(start, run_log, queue, "deaf_thread", env=SHORT_GRACE)

    worker.terminate()

    assert await exit_code(worker, within=1 + AFTER_GRACE) == 0
    assert queue.of(*ids, "state", "attempt", "crashes") == ("pending", 0, 0)


@pytest.mark.slow
async def test_neither_a_blocked_loop_nor_an_endless_import_stops_the_exit(start, run_log, queue, project):
    blocked, ids = await running(start, run_log, queue, "blocks_loop_for_long", env=SHORT_GRACE)
    (project / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    loading = start(app="slow:app")
    await until((project / "loading").exists)

    blocked.terminate()
    loading.terminate()

    assert await exit_code(blocked, within=1 + AFTER_GRACE) == 0
    assert await exit_code(loading, within=AFTER_GRACE) == 0
    assert queue.of(*ids, "state", "attempt", "crashes") == ("pending", 0, 0)
    assert nothing_left(queue)


@pytest.mark.parametrize(("seconds", "tries"), [(60.0, 11), (0.0, 1)], ids=["time is left", "time is up"])
async def test_a_supervisor_that_stops_asks_postgresql_again_while_time_is_left(monkeypatch, seconds, tries):
    monkeypatch.setattr(supervisor, "RETRY_AFTER_STOP", seconds)
    monkeypatch.setattr(supervisor, "backoff", lambda _: 0.0)
    stopping, tried = supervisor.Supervisor([]), []

    async def work() -> None:
        tried.append(1)
        if len(tried) <= 10:
            raise StoreUnavailable("away")

    stopping.stop()
    await stopping.retry_while_unavailable(work)

    assert len(tried) == tries


@pytest.mark.slow
async def test_twenty_stops_under_load_cost_no_attempt_and_lose_nothing(start, run_log, queue):
    ids = queue.add("quick", 5000)
    for _ in range(5):
        workers = [start("--concurrency", "20") for _ in range(4)]
        for worker in workers:
            await serving(worker)
            worker.terminate()
        assert [await exit_code(worker, within=25) for worker in workers] == [0, 0, 0, 0]
        assert (left(queue), [complaint for worker in workers for complaint in complaints(worker)]) == (([], []), [])
    assert set(queue.states(*ids)) <= {"completed", "pending"}
    start()

    await queue.completed(*ids, within=60)

    assert queue.sql("select attempt, crashes, count(*) from tenure.history group by 1, 2") == [(1, 0, 5000)]
