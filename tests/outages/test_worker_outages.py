"""PostgreSQL goes away while jobs run: workers wait, finished results are kept, nothing runs twice."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow

LEASE = 6.0


async def busy(start, run_log, queue, **more):
    """A worker whose five slots are taken, and more jobs waiting behind."""
    worker = start("--concurrency", "5", **more)
    await serving(worker)
    ids = [*queue.add("until_released", 4), *queue.add("until_released_in_thread", 1)]
    await until(lambda: run_log.runs(*ids), is_=[1] * 5)
    waiting = queue.add("quick", 20)
    return worker, ids + waiting, [worker.pid, *worker.children()]


async def finish_meanwhile(run_log):
    """The running jobs end while PostgreSQL cannot take their results."""
    run_log.release()
    await until(lambda: len(run_log.entries("end")), is_=4)


async def all_settled_once(worker, run_log, queue, ids, pids):
    await queue.completed(*ids, within=15)
    assert run_log.runs(*ids) == [1] * len(ids)
    assert queue.sql("select attempt, crashes, count(*) from tenure.history group by 1, 2") == [(1, 0, len(ids))]
    assert [worker.pid, *worker.children()] == pids
    assert "lost" not in worker.said


async def test_a_restart_of_the_server_costs_nothing_but_time(start, run_log, queue, server_control):
    worker, ids, pids = await busy(start, run_log, queue)

    server_control.stop()
    await finish_meanwhile(run_log)
    server_control.start()

    await all_settled_once(worker, run_log, queue, ids, pids)


async def test_a_crash_of_the_server_costs_nothing_but_time(start, run_log, queue, server_control):
    worker, ids, pids = await busy(start, run_log, queue)
    on_disk(queue)

    await server_control.kill()
    await finish_meanwhile(run_log)
    server_control.start()

    await all_settled_once(worker, run_log, queue, ids, pids)


def on_disk(queue):
    """A claim commits without waiting for the disk; this commit waits, and takes along all that came before."""
    queue.sql("insert into tenure.queues (name) values ('flushed')")


@pytest.mark.slow
async def test_leases_that_expired_while_the_server_was_unavailable_cost_no_worker_its_jobs(
    start, run_log, queue, server_control
):
    """Two workers reconnect with expired leases; neither may condemn the other."""
    lease = {"TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": str(LEASE)}
    other = start("--concurrency", "5", env=lease)
    await serving(other)
    ids = queue.add("patient", 5)
    await until(lambda: run_log.runs(*ids), is_=[1] * 5)
    worker, more, pids = await busy(start, run_log, queue, env=lease)

    server_control.stop()
    back_at = time.monotonic() + 2.5 * LEASE
    await finish_meanwhile(run_log)
    await until(lambda: time.monotonic() > back_at, within=3 * LEASE)
    server_control.start()

    await until(lambda: queue.sql("select count(*) from tenure.workers where expires_at > clock_timestamp()"), is_=[(2,)])
    await queue.completed(*more)
    run_log.release("second_release")
    await all_settled_once(worker, run_log, queue, ids + more, pids)
    assert "lost" not in other.said


async def test_connections_cut_again_and_again_cost_nothing_but_time(start, run_log, queue):
    worker, ids, pids = await busy(start, run_log, queue)
    run_log.release()
    for _ in range(15):
        ids += queue.add("quick", 10)
        queue.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tenure %%'")
        await until(lambda: queue.sql("select 1 from pg_stat_activity where application_name = 'tenure claim'"))

    await queue.completed(*ids)

    assert queue.sql("select attempt, crashes, count(*) from tenure.history group by 1, 2") == [(1, 0, len(ids))]
    assert [worker.pid, *worker.children()] == pids
    # A claim whose answer was lost with its connection ran nowhere; nothing ran twice.
    assert set(run_log.runs(*ids)) == {1}


async def test_a_worker_that_starts_while_the_server_is_away_waits_for_it(start, run_log, queue, server_control):
    [job] = queue.add("quick")
    server_control.stop()
    worker = start()
    await until(lambda: "PostgreSQL cannot be reached" in worker.said)

    server_control.start()

    await queue.completed(job)


async def test_a_child_that_dies_while_the_server_is_away_gives_its_jobs_back_afterwards(start, run_log, queue, server_control):
    worker = start()
    [child] = await serving(worker)
    [job] = queue.add("until_released")
    await until(run_log.entries)

    server_control.stop()
    os.kill(child, signal.SIGKILL)
    await until(lambda: "signal SIGKILL" in worker.said)
    server_control.start()

    await until(lambda: run_log.runs(job), is_=[2])
    run_log.release()
    await queue.completed(job)
    assert queue.of(job, "attempt", "crashes") == (1, 1)


async def test_a_stop_while_the_server_is_away_still_ends(start, run_log, queue, server_control):
    worker, ids, _ = await busy(start, run_log, queue, env={"TENURE_WORKERS_GRACE_SECONDS": "1"})

    server_control.stop()
    worker.terminate()

    await until(lambda: worker.process.poll() is not None, within=12)
    assert worker.process.returncode == 0
    server_control.start()
    assert queue.states(*ids) == {"running": 5, "pending": 20}  # the lease gives them back
