"""Who is frozen, blocked or slow: the lease is kept where it can be, and what comes too late is refused."""

from __future__ import annotations

import os
import signal

import pytest

from tests.manager.worker_helpers import SHORT_LEASE, ended, serving
from tests.store.forged_jobs import take_over
from tests.waiting import PATIENCE, until


@pytest.mark.slow
async def test_a_worker_frozen_beyond_its_lease_is_rejected_and_continues_with_a_new_id(start, run_log, queue):
    rescuer = start("--concurrency", "1", env=SHORT_LEASE)
    [rescuing_child] = await serving(rescuer)
    os.kill(rescuing_child, signal.SIGSTOP)  # so that the other one gets the job
    frozen = start("--concurrency", "1", env=SHORT_LEASE)
    [job] = queue.add("until_released")
    [first_run] = await until(run_log.entries)

    frozen.signal_all(signal.SIGSTOP)
    os.kill(rescuing_child, signal.SIGCONT)
    [second_run] = await until(lambda: run_log.entries(fence=2), within=30)
    run_log.release()
    await queue.completed(job)
    frozen.signal_all(signal.SIGCONT)

    await until(lambda: "lost its lease; its runs are aborted" in frozen.said)
    await until(lambda: frozen.said.count("ready: "), is_=2)
    assert queue.of(job, "worker_id::text", "fence", "attempt") == (second_run["worker"], 2, 1)
    rescuer.kill()
    [next_job] = queue.add("quick")
    await queue.completed(next_job)
    assert queue.of(next_job, "worker_id::text") != (first_run["worker"],)


async def test_an_outcome_that_comes_after_the_takeover_is_refused_and_said_so(start, run_log, queue):
    worker = start()
    await serving(worker)
    [job] = queue.add("until_released")
    await until(run_log.entries)
    take_away(queue, job)

    run_log.release()

    await until(lambda: "outcome rejected: the run had lost its lease" in worker.said)
    assert queue.of(job, "state", "fence") == ("running", 2)
    [another] = queue.add("quick")
    await queue.completed(another)


def take_away(queue, job):
    """As another worker's claim after the reaper gave the job back."""
    take_over(queue.sql, job)


async def test_a_long_run_that_was_taken_over_learns_why_it_is_aborted(start, run_log, queue):
    worker = start(env=SHORT_LEASE)
    await serving(worker)
    ids = [*queue.add("until_released"), *queue.add("until_released_in_thread")]
    await until(lambda: run_log.runs(*ids), is_=[1, 1])
    for job in ids:
        take_away(queue, job)

    told = await until(lambda: len(run_log.entries("aborted")) == 2 and run_log.entries("aborted"))

    assert {entry["reason"] for entry in told} == {"taken_by_another_worker"}


@pytest.mark.slow
async def test_a_frozen_child_keeps_its_lease_as_long_as_its_supervisor_renews_it(start, run_log, queue):
    worker = start(env=SHORT_LEASE)
    [child] = await serving(worker)
    [job] = queue.add("until_released")
    await until(run_log.entries)

    os.kill(child, signal.SIGSTOP)
    await lease_passes(queue)
    os.kill(child, signal.SIGCONT)
    run_log.release()

    await queue.completed(job)
    assert (run_log.runs(job), queue.of(job, "fence", "crashes")) == ([1], (1, 0))


async def lease_passes(queue):
    """Until a lease given now would have run out, by PostgreSQL's clock."""
    [(end,)] = queue.sql("select clock_timestamp() + interval '4 s'")
    await until(lambda: queue.sql("select clock_timestamp() > %s", end) == [(True,)])


@pytest.mark.slow
async def test_handlers_that_hog_their_process_for_longer_than_the_lease_do_not_lose_it(start, run_log, queue):
    worker = start("--processes", "2", "--concurrency", "1", env=SHORT_LEASE)
    await serving(worker, 2)
    ids = [*queue.add("blocks_loop", seconds=4.5), *queue.add("holds_gil", seconds=4.5)]

    await queue.completed(*ids, within=30)

    assert run_log.runs(*ids) == [1, 1]
    assert {queue.of(job, "fence", "attempt", "crashes") for job in ids} == {(1, 1, 0)}
    assert len({entry["pid"] for entry in run_log.entries()}) == 2
    assert "lost" not in worker.said


async def test_the_lease_of_a_process_whose_loop_is_blocked_is_renewed_all_the_same(start, run_log, queue):
    await serving(start(env=SHORT_LEASE))
    queue.add("blocks_loop_for_long")
    await until(run_log.entries)

    await lease_passes(queue)

    assert queue.sql("select expires_at > clock_timestamp(), died_at from tenure.workers") == [(True, None)]


async def test_a_child_frozen_beyond_the_stall_limit_is_killed_and_its_jobs_are_requeued(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_STALL_LIMIT_SECONDS": "3"})
    [child] = await serving(worker)
    [job] = queue.add("until_released")
    await until(run_log.entries)

    os.kill(child, signal.SIGSTOP)

    await ended(child, within=PATIENCE)
    await until(lambda: run_log.runs(job), is_=[2])
    assert "worker process is stalled; killing it" in worker.said
    run_log.release()
    await queue.completed(job)
    assert queue.of(job, "attempt", "crashes") == (1, 1)


async def test_a_worker_whose_lease_ran_out_before_anyone_noticed_renews_it_and_claims_again(start, queue):
    """As after an outage or a sleep of the machine: no process condemned it, so it is still the same worker."""
    worker = start()
    await serving(worker)
    [(worker_id, heartbeat)] = queue.sql("select id, heartbeat_at from tenure.workers")
    queue.sql("update tenure.workers set expires_at = clock_timestamp() - interval '1 s'")
    queue.sql("select pg_notify('tenure', 'jobs default')")  # it polls, and learns that its lease is over
    await until(lambda: queue.sql("select 1 from tenure.workers where heartbeat_at > %s", heartbeat))

    [(job,)] = queue.sql("""select id::text from tenure.enqueue('[{"kind": "quick"}]')""")  # without a notification

    await queue.completed(job)
    assert queue.of(job, "worker_id") == (worker_id,)


async def test_a_run_that_lost_its_lease_may_await_its_clean_up(start, run_log, queue):
    await serving(start(env=SHORT_LEASE))
    queue.add("tidies_up")
    await until(run_log.entries)

    queue.sql("update tenure.workers set died_at = clock_timestamp(), died_how = 'expired'")

    [told] = await until(lambda: run_log.entries("tidied"))
    assert told["reason"] == "taken_by_another_worker"


OFTEN_RENEWED = {"TENURE_WORKERS_RENEW_INTERVAL_SECONDS": "0.5"}

REFUSED_RENEWAL = """
    create function refuse() returns trigger language plpgsql as
        'begin raise exception ''not this one'' using errcode = ''AU001''; end';
    create trigger refuse before update on tenure.workers for each row
        when (old.id = '{worker}' and new.died_at is null) execute function refuse()"""


async def test_a_worker_whose_renewal_is_rejected_costs_no_other_its_lease_and_continues(start, queue):
    worker = start("--processes", "2", env=OFTEN_RENEWED)
    await serving(worker, 2)

    def renewed(worker_id, since):
        return queue.sql("select heartbeat_at from tenure.workers where id = %s and heartbeat_at > %s", worker_id, since)

    bad, good = [worker_id for (worker_id,) in queue.sql("select id from tenure.workers order by id")]
    queue.sql(REFUSED_RENEWAL.format(worker=bad))
    [(last,)] = queue.sql("select heartbeat_at from tenure.workers where id = %s", bad)
    [(seen,)] = queue.sql("select clock_timestamp()")
    for _ in range(3):
        [(seen,)] = await until(lambda since=seen: renewed(good, since))
    assert not renewed(bad, last)
    queue.sql("drop function refuse() cascade")
    await until(lambda: renewed(bad, last))
    assert queue.sql("select count(*) from tenure.workers where died_at is null and id in (%s, %s)", bad, good) == [(2,)]
    assert worker.said.count("PostgreSQL rejects the renewal of a worker") == 1
    assert "lost its lease" not in worker.said
