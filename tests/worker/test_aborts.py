"""Runs that end before they are done: timeouts, deleted and taken-over jobs, lost leases, shutdown."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tenure import Context, Retry, StoreUnavailable, Tenure
from tenure.store.link import Link
from tests.store.forged_jobs import take_over
from tests.waiting import until
from tests.worker.serving import serving


@pytest.fixture
async def app(dsn):
    """The shortest lease there is: long runs ask each second whether they are still ours."""
    app = Tenure(dsn, workers_lease_timeout_seconds=3)
    yield app
    await app.close()


def watched(app: Tenure, **options: Any) -> tuple[Any, list[Any], asyncio.Event]:
    """A job that waits until it is aborted and notes why."""
    reasons: list[Any] = []
    started = asyncio.Event()

    @app.job(name="watched", **options)
    async def watched(ctx: Context) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            reasons.append(ctx.signal.reason)
            raise

    return watched, reasons, started


async def test_a_run_that_takes_too_long_is_aborted_and_tried_again(app, database):
    job, reasons, _ = watched(app, timeout="100ms", retry=Retry(max_attempts=2, initial="10ms"))
    async with serving(app):
        await job.enqueue()
        await until(lambda: database.sql("select state, attempt from tenure.jobs"), is_=[("dead_letter", 2)])
    assert reasons == ["timeout", "timeout"]
    assert "timed out" in database.sql("select error from tenure.jobs")[0][0]


async def test_a_thread_learns_that_its_time_is_up_and_keeps_its_slot_until_it_listens(app, database):
    release, heard = threading.Event(), []

    @app.job(timeout="100ms", max_attempts=1)
    def work(ctx: Context) -> None:
        heard.append(ctx.signal.wait_sync(10))
        release.wait(10)

    @app.job
    async def after() -> None: ...

    async with serving(app, concurrency=1):
        await work.enqueue()
        await until(lambda: database.sql("select state from tenure.jobs"), is_=[("dead_letter",)])
        await after.enqueue()
        await until(lambda: heard, is_=["timeout"])
        assert database.sql("select count(*) from tenure.history") == [(0,)]
        release.set()
        await until(lambda: database.sql("select count(*) from tenure.history"), is_=[(1,)])


async def test_the_run_of_a_deleted_job_is_aborted(app, database):
    job, reasons, started = watched(app)
    async with serving(app):
        await job.enqueue()
        await started.wait()
        database.sql("delete from tenure.jobs")
        await until(lambda: reasons, is_=["not_found"])
    assert database.sql("select count(*) from tenure.all_jobs") == [(0,)]


async def test_the_run_of_a_job_that_another_took_is_aborted(app, database):
    job, reasons, started = watched(app)
    async with serving(app):
        handle = await job.enqueue()
        await started.wait()
        take_over(database.sql)
        await until(lambda: reasons, is_=["taken_by_another_worker"])
        assert (await handle.status()).state == "running"


async def test_the_outcome_of_a_stale_run_is_refused(app, database, caplog):
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def work() -> str:
        started.set()
        await go_on.wait()
        return "stale"

    async with serving(app):
        handle = await work.enqueue()
        await started.wait()
        take_over(database.sql)
        go_on.set()
        await until(lambda: "outcome rejected: the run had lost its lease" in caplog.text)
        status = await handle.status()
    assert (status.state, status.fence, status.output) == ("running", 2, None)


async def test_a_condemned_worker_continues_under_a_new_id(app, database):
    job, reasons, started = watched(app)

    @app.job
    async def after() -> None: ...

    async with serving(app) as worker:
        first = worker.worker_id
        await job.enqueue()
        await started.wait()
        database.condemn(first)
        await until(lambda: worker.worker_id != first)
        await until(lambda: reasons, is_=["taken_by_another_worker"])
        await after.enqueue()
        await until(lambda: database.sql("select kind, worker_id::text from tenure.history"), is_=[("after", worker.worker_id)])
        # The reaper requeues the job, and it starts again under the new worker id.
        await until(
            lambda: database.sql("select worker_id::text from tenure.held_jobs"),
            is_=[(worker.worker_id,)],
            within=15,
        )


async def test_a_job_whose_own_lease_expired_is_requeued(app, database):
    fences: list[int] = []

    @app.job(lease="500ms")
    async def work(ctx: Context) -> None:
        fences.append(ctx.fence)
        if ctx.fence == 1:
            await asyncio.sleep(60)

    async with serving(app):
        await work.enqueue()
        short = "select j.lease_until - c.at < interval '1 second' from tenure.jobs j join tenure.claims c on c.id = j.claim_id"
        await until(lambda: database.sql(short), is_=[(True,)])
        await until(lambda: database.sql("select state, crashes, attempt from tenure.history"), is_=[("completed", 1, 1)])
    assert fences == [1, 2]


async def test_stopping_lets_runs_finish_and_requeues_the_others(app, database):
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def short() -> None:
        started.set()
        await go_on.wait()

    job, reasons, long_started = watched(app)
    worker = app.worker(grace="300ms")
    await worker.start()
    quick, slow = await short.enqueue(), await job.enqueue()
    await asyncio.gather(started.wait(), long_started.wait())
    stopping = asyncio.create_task(worker.stop())
    go_on.set()
    await stopping
    assert reasons == ["shutdown"]
    assert (await quick.status()).state == "completed"
    status = await slow.status()
    assert (status.state, status.attempt, status.crashes) == ("pending", 0, 0)
    assert database.sql("select count(*) from tenure.workers") == [(0,)]


async def test_a_stopping_worker_keeps_its_lease_for_as_long_as_its_jobs_run(app, database):
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def work() -> None:
        started.set()
        await go_on.wait()

    worker = app.worker(grace="30s")
    await worker.start()
    await work.enqueue()
    await started.wait()
    [(promised,)] = database.sql("select expires_at from tenure.workers")
    stopping = asyncio.create_task(worker.stop())
    try:
        await until(lambda: database.sql("select expires_at > %s from tenure.workers", promised), is_=[(True,)], within=12)
    finally:
        go_on.set()
        await stopping


async def test_jobs_of_a_claim_whose_answer_was_lost_still_run(app, database, monkeypatch):
    """The claim was committed, but the connection broke before its rows arrived: the jobs are held, and do not run."""
    fetch, lost = Link.fetch, []

    async def fetch_and_lose(self: Link, query: Any, **more: Any) -> Any:
        rows = await fetch(self, query, **more)
        if query.name == "jobs/claim_jobs" and rows[0][1] is not None and not lost:
            lost.append(rows)
            raise StoreUnavailable("the connection broke after the commit")
        return rows

    monkeypatch.setattr(Link, "fetch", fetch_and_lose)

    @app.job
    async def work() -> None: ...

    async with serving(app):
        await work.enqueue()
        await until(lambda: lost)
        await until(
            lambda: database.sql("select count(*) from tenure.history"), is_=[(1,)], within=30
        )  # an idle worker compares every 60 s


async def test_a_second_request_to_stop_leaves_a_handler_its_time_to_clean_up(app, database):
    """A supervisor repeats itself: each renewal reports once more that the lease is lost."""
    started, cleaning, proceed, cleaned = (asyncio.Event() for _ in range(4))

    @app.job
    async def tidy() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleaning.set()
            await proceed.wait()
            cleaned.set()

    worker = app.worker(grace=0)
    await worker.start()
    await tidy.enqueue()
    await started.wait()
    stopping = asyncio.create_task(worker.stop())
    await cleaning.wait()

    worker._engine.hurry()
    for _ in range(20):
        await asyncio.sleep(0)  # as many steps as the stop needs to requeue the job
    still_running = worker._engine.running
    proceed.set()
    await stopping

    assert (still_running, cleaned.is_set()) == (1, True)
    assert database.sql("select state, attempt from tenure.jobs") == [("pending", 0)]


async def test_a_second_request_to_stop_counts_while_a_claim_is_under_way(app, database, monkeypatch):
    """The first request waits for the answer to the claim, up to five seconds. Then the jobs had all of its grace period left."""
    started, claiming, answered = (asyncio.Event() for _ in range(3))

    @app.job
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async def claim(_free):
        claiming.set()
        await answered.wait()
        return []

    worker = app.worker(grace=60)
    await worker.start()
    await endless.enqueue()
    await started.wait()
    engine = worker._engine
    monkeypatch.setattr(engine._claimer, "claim", claim)
    engine._look_for_jobs()
    await claiming.wait()
    stopping = asyncio.create_task(worker.stop())
    await until(lambda: engine._stopping)

    engine.hurry()
    answered.set()
    async with asyncio.timeout(30):
        await stopping
    assert database.sql("select state, attempt from tenure.jobs") == [("pending", 0)]
