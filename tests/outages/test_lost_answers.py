"""The commit succeeded and its answer was lost: it is not repeated, and its jobs are not taken for lost."""

from __future__ import annotations

import asyncio

import pytest

from tenure import Tenure
from tenure.chaos.proxy import Proxy
from tests.manager.worker_helpers import serving
from tests.processes import worker_process
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
async def app(dsn):
    app = Tenure(dsn)

    @app.job
    async def quick() -> str:
        return "done"

    app.quick = quick
    yield app
    await app.close()


class Standby:
    """While it is missing, every durable commit is done and yet waits to be told so."""

    def __init__(self, sql):
        self._sql = sql

    def is_missing(self):
        self._sql("alter system set synchronous_standby_names = 'absent'")
        self._reload()

    def is_needed_no_more(self):
        self._sql("alter system reset synchronous_standby_names")
        self._reload()

    def _reload(self):
        self._sql("select pg_reload_conf()")

    async def waiting(self, role):
        """The backend of this role whose commit is done and waits."""
        look = "select pid from pg_stat_activity where wait_event = 'SyncRep' and application_name = %s"
        [(pid,)] = await until(lambda: self._sql(look, f"tenure {role}"))
        return pid

    def cut(self, pid):
        self._sql("select pg_terminate_backend(%s)", pid)


@pytest.fixture
def standby(sql):
    return Standby(sql)


def all_ids(queue):
    return [str(row[0]) for row in queue.sql("select id from tenure.all_jobs")]


async def test_an_enqueue_during_an_outage_waits_and_makes_one_job(app, queue, server_control):
    await app.quick.enqueue()
    server_control.stop()
    waiting = [asyncio.create_task(app.quick.enqueue()) for _ in range(5)]
    await asyncio.wait(waiting, timeout=0.5)
    assert not any(task.done() for task in waiting)

    server_control.start()

    handles = await asyncio.gather(*waiting)
    assert set(all_ids(queue)) >= {str(handle.id) for handle in handles}
    assert len(all_ids(queue)) == 6


async def test_a_sync_enqueue_during_an_outage_waits_and_makes_one_job(app, queue, server_control):
    server_control.stop()
    waiting = asyncio.create_task(asyncio.to_thread(app.quick.enqueue_sync))
    await asyncio.wait([waiting], timeout=0.5)
    assert not waiting.done()

    server_control.start()

    handle = await waiting
    assert all_ids(queue) == [str(handle.id)]
    app._portal.close()


async def test_an_enqueue_whose_commit_was_not_answered_makes_one_job(app, queue, standby):
    standby.is_missing()
    enqueued = asyncio.create_task(app.quick.enqueue())
    backend = await standby.waiting("enqueue")
    standby.cut(backend)
    await until(lambda: len(all_ids(queue)), is_=1)
    standby.is_needed_no_more()

    handle = await enqueued

    assert all_ids(queue) == [str(handle.id)]


async def test_an_enqueue_whose_job_is_finished_before_the_answer_comes_makes_one_job(app, queue, standby):
    standby.is_missing()
    enqueued = asyncio.create_task(app.quick.enqueue())
    standby.cut(await standby.waiting("enqueue"))
    [job] = await until(lambda: all_ids(queue))
    finish(queue, job)
    standby.is_needed_no_more()

    handle = await enqueued

    assert str(handle.id) == job
    assert queue.of(job, "state") == ("completed",)


def finish(queue, job):
    """As a quick worker would have, in the meantime."""
    queue.sql(
        "with done as (delete from tenure.jobs where id = %s returning *) "
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, "
        "state, kind, queue, input) "
        "select id, 1, enqueued_at, now(), 1, max_attempts, priority, 0, 'completed', kind, queue, input from done",
        job,
    )


async def test_a_batch_whose_commit_was_not_answered_is_made_once_though_part_of_it_is_finished(app, queue, standby):
    standby.is_missing()
    calls = [app.quick.call() for _ in range(10)]
    enqueued = asyncio.create_task(app.enqueue_many(calls))
    standby.cut(await standby.waiting("enqueue"))
    ids = await until(lambda: all_ids(queue))
    for job in ids[::2]:
        finish(queue, job)
    standby.is_needed_no_more()

    handles = await enqueued

    assert sorted(all_ids(queue)) == sorted(str(handle.id) for handle in handles)
    assert queue.states(*ids) == {"completed": 5, "pending": 5}


async def test_a_completion_whose_commit_was_not_answered_is_recorded_once_and_not_taken_for_lost(start, run_log, queue, standby):
    worker = start()
    await serving(worker)
    ids = queue.add("until_released", 5)
    await until(lambda: run_log.runs(*ids), is_=[1] * 5)

    standby.is_missing()
    run_log.release()
    backend = await standby.waiting("settle")
    standby.cut(backend)
    # The five may go out in more than one group: those after the first wait for the standby as well.
    await until(lambda: queue.states(*ids).get("completed"))
    standby.is_needed_no_more()
    ids += queue.add("quick", 3)

    await queue.completed(*ids)
    assert set(run_log.runs(*ids)) == {1}
    await until(lambda: "PostgreSQL is back after" in worker.said)
    assert "lease was lost" not in worker.said


async def test_a_claim_whose_answer_was_lost_does_not_strand_its_jobs(project, run_log, queue, dsn):
    """The jobs stand as running, held by a worker that lives and knows nothing of them."""
    cutter = Proxy(dsn)
    async with cutter.open() as cut_dsn:
        with worker_process(project, cut_dsn, "--concurrency", "5") as worker:
            await serving(worker)
            await queue.completed(*queue.add("quick", 3))
            cutter.lose_answer("claim", when_seen=b"quick")
            ids = queue.add("quick", 5)
            await until(lambda: cutter.cuts, is_=1)

            await queue.completed(*ids, within=12)

            assert run_log.runs(*ids) == [1] * 5
            assert {queue.of(job, "attempt", "crashes") for job in ids} == {(1, 0)}


async def test_an_outcome_whose_answer_was_lost_is_recorded_once(project, run_log, queue, dsn):
    cutter = Proxy(dsn)
    async with cutter.open() as cut_dsn:
        with worker_process(project, cut_dsn) as worker:
            await serving(worker)
            ids = queue.add("until_released", 5)
            await until(lambda: run_log.runs(*ids), is_=[1] * 5)
            cutter.lose_answer("settle", when_seen=b"INSERT 0 ")
            run_log.release()

            await queue.completed(*ids)

            await until(lambda: "PostgreSQL is back after" in worker.said)
            assert (cutter.cuts, "lease was lost" in worker.said) == (1, False)
            assert run_log.runs(*ids) == [1] * 5
