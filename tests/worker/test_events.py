"""Events for subscribers: each event with its fields, and no subscriber can harm a job."""

from __future__ import annotations

import asyncio
import gc
from uuid import UUID

import pytest

from tenure import (
    Cancel,
    ConfigError,
    Context,
    Event,
    Fail,
    InvalidInput,
    JobEnqueued,
    JobSettled,
    JobStarted,
    LeaderDeposed,
    LeaderElected,
    Retry,
    RunLost,
    Snooze,
    Tenure,
    WorkerLeaseLost,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from tests.store.forged_jobs import take_over
from tests.waiting import until
from tests.worker.serving import serving


@pytest.fixture
async def app(dsn):
    app = Tenure(dsn, workers_lease_timeout_seconds=3)
    yield app
    await app.close()


class Seen(list):
    def of(self, type_):
        return [event for event in self if isinstance(event, type_)]

    def terms(self):
        return {(event.duty, event.term) for event in self.of(LeaderElected)}


@pytest.fixture
def seen(app):
    """All that happens."""
    seen = Seen()
    app.on()(seen.append)
    return seen


async def test_every_enqueued_job_is_reported(app, seen):
    @app.job
    async def work() -> None: ...

    handles = [await work.enqueue(), *await app.enqueue_many([work.call(), work.call()])]
    handles += [await asyncio.to_thread(work.enqueue_sync), *await asyncio.to_thread(app.enqueue_many_sync, [work.call()])]
    assert seen == [JobEnqueued(job_id=handle.id, kind="work") for handle in handles]


async def test_a_call_whose_key_was_taken_is_not_reported_as_enqueued(app, seen):
    @app.job
    async def work() -> None: ...

    first = await work.using(key="k").enqueue()
    second = await work.using(key="k").enqueue()
    assert second.existed
    assert seen == [JobEnqueued(job_id=first.id, kind="work")]


async def test_a_refused_job_is_not_reported_as_enqueued(app, seen):
    @app.job
    async def work(n: int) -> None: ...

    with pytest.raises(InvalidInput):
        await work.enqueue("x")
    assert seen == []


async def test_the_life_of_a_job_and_its_worker_is_reported_in_order(app, seen):
    @app.job(queue="mail")
    async def work() -> str:
        return "done"

    async with serving(app) as worker:
        worker_id = UUID(worker.worker_id)
        handle = await work.enqueue()
        await handle.result("30s")
        await until(lambda: seen.of(JobSettled))
        await until(lambda: seen.terms() >= {("stager", 1), ("reaper", 1), ("cleaner", 1)})
    assert seen[0] == WorkerStarted(worker_id=worker_id, queues=("default", "mail"), worker=worker.name)
    assert [WorkerStopping(worker_id=worker_id, grace=0.0, worker=worker.name)] == seen.of(WorkerStopping)
    assert seen[-1] == WorkerStopped(worker_id=worker_id, worker=worker.name)
    [enqueued], [started], [settled] = seen.of(JobEnqueued), seen.of(JobStarted), seen.of(JobSettled)
    assert enqueued.job_id == handle.id
    assert started == JobStarted(
        job_id=handle.id, kind="work", queue="mail", attempt=1, fence=1, worker_id=worker_id, worker=worker.name
    )
    assert (settled.job_id, settled.kind, settled.queue, settled.attempt, settled.fence, settled.worker_id, settled.worker) == (
        handle.id, "work", "mail", 1, 1, worker_id, worker.name,
    )  # fmt: skip
    assert worker.name
    assert (settled.state, settled.what, settled.error) == ("completed", "completed", None)
    assert settled.ran >= 0


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        (lambda: Fail("no"), [("failed", "failed", "no")]),
        (lambda: Cancel("no need"), [("canceled", "canceled", "no need")]),
        (lambda: Snooze("1h"), [("scheduled", "snoozed", None)]),
        (lambda: 1 / 0, [("retry", "failed", "division by zero"), ("dead_letter", "failed", "division by zero")]),
        (lambda: asyncio.sleep(60), [("retry", "timed_out", "timed out"), ("dead_letter", "timed_out", "timed out")]),
    ],
    ids=["Fail", "Cancel", "Snooze", "error", "timeout"],
)
async def test_each_end_of_a_run_is_reported_by_its_own_word(app, seen, deed, told):
    @app.job(timeout="100ms", retry=Retry(2, initial="10ms", jitter=False))
    async def work() -> None:
        value = deed()
        return await value if asyncio.iscoroutine(value) else value

    async with serving(app):
        await work.enqueue()
        await until(lambda: len(seen.of(JobSettled)), is_=len(told))
    for attempt, (event, (state, what, error)) in enumerate(zip(seen.of(JobSettled), told, strict=True), 1):
        assert (event.state, event.what, event.attempt) == (state, what, attempt)
        assert event.error is None if error is None else error in event.error


async def test_a_job_that_is_requeued_is_reported(app, seen):
    started = asyncio.Event()

    @app.job
    async def work() -> None:
        started.set()
        await asyncio.sleep(60)

    async with serving(app):
        handle = await work.enqueue()
        await started.wait()
    [event] = seen.of(JobSettled)
    assert (event.job_id, event.state, event.what, event.error) == (handle.id, "pending", "requeued", None)
    assert isinstance(seen[-1], WorkerStopped)


@pytest.mark.parametrize("what", ["taken_by_another_worker", "not_found", "canceled"])
async def test_a_run_that_lost_its_job_is_reported_once(app, seen, database, caplog, what):
    caplog.set_level("INFO", "tenure")
    ended, started = asyncio.Event(), asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with serving(app):
        handle = await work.enqueue()
        await started.wait()
        if what == "canceled":
            await handle.cancel()
        elif what == "not_found":
            database.sql("delete from tenure.jobs")
        else:
            take_over(database.sql)
        await asyncio.wait_for(ended.wait(), 10)
    assert seen.of(RunLost) == [RunLost(job_id=handle.id, kind="work", fence=1, reason=what, queue="default")]
    [record] = [record for record in caplog.records if f"aborted: {what}" in record.getMessage()]
    assert (record.job_id, record.kind, record.reason) == (str(handle.id), "work", what)
    assert record.levelname == ("INFO" if what == "canceled" else "WARNING")
    assert seen.of(JobSettled) == []


async def test_the_refused_outcome_of_a_stale_run_is_reported(app, seen, database):
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def work() -> None:
        started.set()
        await go_on.wait()

    async with serving(app):
        handle = await work.enqueue()
        await started.wait()
        take_over(database.sql)
        go_on.set()
        [event] = await until(lambda: seen.of(RunLost))
    assert (event.job_id, event.fence, event.reason) == (handle.id, 1, "taken_by_another_worker")
    assert seen.of(JobSettled) == []


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_run_whose_job_the_same_worker_claims_again_is_reported_as_lost_once(app, seen, run_in):
    def work(ctx: Context) -> int:
        if ctx.fence == 1:
            ctx.signal.wait_sync(30)  # no heartbeat
        return ctx.fence

    async def work_async(ctx: Context) -> int:
        if ctx.fence == 1:
            await asyncio.sleep(60)
        return ctx.fence

    job = app.job(name="work", lease="2s", run_in=run_in)(work_async if run_in == "loop" else work)
    async with serving(app):
        handle = await job.enqueue()
        assert await handle.result("30s") == 2
        await until(lambda: seen.of(JobSettled))
    assert seen.of(RunLost) == [
        RunLost(job_id=handle.id, kind="work", fence=1, reason="taken_by_another_worker", queue="default")
    ]
    assert [event.fence for event in seen.of(JobStarted)] == [1, 2]
    assert [event.fence for event in seen.of(JobSettled)] == [2]


async def test_each_run_of_a_worker_that_lost_its_lease_is_reported_as_lost_once(app, seen, database):
    go_on = asyncio.Event()

    @app.job
    async def work() -> None:
        await go_on.wait()

    async with serving(app) as worker:
        handles = [await work.enqueue() for _ in range(3)]
        await until(lambda: len(seen.of(JobStarted)), is_=3)
        database.condemn(worker.worker_id)
        await until(lambda: len(seen.of(RunLost)), is_=3)
        go_on.set()
        await until(lambda: len(seen.of(JobSettled)), is_=3)
    assert {event.job_id for event in seen.of(RunLost)} == {handle.id for handle in handles}
    assert len(seen.of(RunLost)) + len(seen.of(JobSettled)) == len(seen.of(JobStarted)) == 6


async def test_a_worker_that_lost_its_lease_and_a_leader_that_lost_its_duty_are_reported(app, seen, database):
    async with serving(app) as worker:
        first = worker.worker_id
        await until(lambda: ("reaper", 1) in seen.terms())
        database.sql("update tenure.leases set holder = gen_random_uuid(), term = 7, expires_at = now() + interval '1 hour'")
        database.condemn(first)
        await until(lambda: seen.of(WorkerLeaseLost), is_=[WorkerLeaseLost(worker_id=UUID(first), worker=worker.name)])
        await until(lambda: LeaderDeposed(duty="reaper", term=1) in seen, within=15)


async def test_subscribers_may_be_coroutines_and_may_choose(app):
    settled, both, order = [], [], []

    @app.on(JobSettled)
    async def note(event: JobSettled) -> None:
        await asyncio.sleep(0)
        settled.append(event.what)

    @app.on(JobStarted, JobSettled)
    def note_both(event: Event) -> None:
        both.append(type(event))

    @app.job
    async def work() -> None:
        order.append("ran")

    async with serving(app):
        await (await work.enqueue()).result("30s")
        await until(lambda: settled, is_=["completed"])
    assert both == [JobStarted, JobSettled]
    assert note_both.__name__ == "note_both"  # still the function it was


@pytest.mark.parametrize(
    "event_type", [JobEnqueued, JobStarted, JobSettled, WorkerStarted, WorkerStopping, WorkerStopped, LeaderElected]
)
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_failing_subscriber_is_reported_and_harms_no_other(app, caplog, event_type, kind):
    heard = []

    def fails(event: Event) -> None:
        raise ValueError("in the subscriber")

    async def fails_later(event: Event) -> None:
        await asyncio.sleep(0)
        raise ValueError("in the subscriber")

    app.on(event_type)(fails if kind == "plain" else fails_later)
    app.on(event_type)(heard.append)

    @app.job
    async def work() -> str:
        return "done"

    async with serving(app):
        assert await (await work.enqueue()).result("30s") == "done"
        if event_type is LeaderElected:
            await until(lambda: heard)
    assert heard
    await until(lambda: event_type.__name__ in [getattr(record, "event", "") for record in caplog.records])
    assert "in the subscriber" in caplog.text


async def test_a_coroutine_receives_events_of_jobs_enqueued_by_code_without_a_loop(app, caplog):
    heard = []

    @app.on(JobEnqueued)
    async def note(event: JobEnqueued) -> None:
        heard.append(event.job_id)

    @app.job
    async def work() -> None: ...

    handle = await asyncio.to_thread(work.enqueue_sync)
    gc.collect()
    await until(lambda: heard or "failed" in caplog.text)
    assert heard == [handle.id]


async def test_a_slow_subscriber_that_waits_delays_no_job(app):
    lingering, may_end = [], asyncio.Event()

    @app.on(JobStarted)
    async def linger(event: Event) -> None:
        lingering.append(event)
        await may_end.wait()
        lingering.clear()

    @app.job
    async def work() -> None: ...

    async with serving(app):
        await (await work.enqueue()).result("20s")
        assert len(lingering) == 1
        may_end.set()


@pytest.mark.parametrize("wrong", [int, "JobSettled", JobEnqueued(job_id=UUID(int=1), kind="x"), None, Exception])
def test_subscribing_to_a_class_that_is_not_an_event_is_refused(dsn, wrong):
    with pytest.raises(ConfigError, match="is not an event"):
        Tenure(dsn).on(wrong)(print)
