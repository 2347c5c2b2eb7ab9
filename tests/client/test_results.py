"""Asking a handle for the result: typed, woken when it is there, and told plainly when there is none."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from tenure import Cancel, Context, Fail, Handle, JobCanceled, JobFailed, JobNotFound, JobUnfinished, ResultTimeout, Retry, Snooze
from tenure.store import jobs
from tenure.store.link import Link
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=3, initial="10ms", max_backoff="10ms", jitter=False)


@pytest.fixture
async def app(app):
    yield app
    await app.close()


class Receipt(BaseModel):
    number: int
    lines: list[str] = []


@dataclass
class Point:
    x: int
    y: float


class PaymentError(Exception):
    pass


async def test_a_result_is_what_the_handler_returned_in_its_own_type(app):
    @app.job
    async def receipt() -> Receipt:
        return Receipt(number=7, lines=["a"])

    @app.job
    def point() -> Point:
        return Point(1, 2.5)

    @app.job
    async def several() -> dict[str, list[Receipt]]:
        return {"all": [Receipt(number=1)]}

    @app.job
    async def nothing() -> None: ...

    async with serving(app):
        handles = [await job.enqueue() for job in (receipt, point, several, nothing)]
        results = await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    assert results == [Receipt(number=7, lines=["a"]), Point(1, 2.5), {"all": [Receipt(number=1)]}, None]
    assert await handles[0].result() == results[0]  # it was finished before we asked


async def test_that_there_is_no_result_is_reported_without_looking_again(app, monkeypatch):
    @app.job
    async def nothing() -> None: ...

    @app.job
    async def perhaps() -> str | None: ...

    async with serving(app):
        handles = [await nothing.enqueue(), await perhaps.enqueue()]
        await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    fetch, looks = Link.fetch, []

    async def counted(self, query):
        looks.append(query.name)
        return await fetch(self, query)

    monkeypatch.setattr(Link, "fetch", counted)
    assert [await handle.result() for handle in handles] == [None, None]
    # Where a result may be something else, the run is asked for once: it may still be to add it.
    told = ["jobs/find_job", "jobs/find_job", "late_outputs/find_late_output"]
    assert [name for name in looks if name != "queues/notify"] == told


async def failure(app, job, *args, **kwargs) -> JobFailed:
    async with serving(app):
        handle = await job.enqueue(*args, **kwargs)
        with pytest.raises(JobFailed) as failed:
            await handle.result(timeout=30)
    assert (failed.value.job_id, failed.value.kind) == (handle.id, job.name)
    return failed.value


async def test_a_job_whose_attempts_are_used_up_is_reported_with_the_error_of_its_last(app):
    @app.job(retry=AT_ONCE)
    async def work(ctx: Context) -> None:
        raise PaymentError(f"declined in attempt {ctx.attempt}")

    failed = await failure(app, work)
    assert (failed.error_type, failed.message) == ("PaymentError", "declined in attempt 3")
    assert failed.state == "dead_letter"
    assert failed.traceback.startswith("Traceback (most recent call last):")
    assert 'raise PaymentError(f"declined' in failed.traceback
    assert "replay" in str(failed)
    assert isinstance(failed, JobUnfinished)


MESSAGES = {
    "several lines": ("declined:\n  the card: has expired", "PaymentError", "declined:\n  the card: has expired"),
    "none": ("", "PaymentError", ""),
    "a colon": ("card: declined", "PaymentError", "card: declined"),
}


@pytest.mark.parametrize("case", MESSAGES)
async def test_the_type_and_the_message_of_an_error_are_separate(app, case):
    given, error_type, message = MESSAGES[case]

    @app.job(max_attempts=1)
    async def work() -> None:
        raise PaymentError(given) if given else PaymentError

    failed = await failure(app, work)
    assert (failed.error_type, failed.message) == (error_type, message)


async def test_the_cause_of_an_error_and_its_notes_do_not_hide_it(app):
    @app.job(max_attempts=1)
    async def work() -> None:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            error = PaymentError("outer")
            error.add_note("Hint: call the bank")
            raise error from inner

    failed = await failure(app, work)
    assert (failed.error_type, failed.message.splitlines()[0]) == ("PaymentError", "outer")
    assert "KeyError: 'inner'" in failed.traceback
    assert "Hint: call the bank" in failed.traceback


async def test_of_several_errors_at_once_the_group_is_reported(app):
    @app.job(max_attempts=1)
    async def work() -> None:
        raise ExceptionGroup("two at once", [ValueError("a: one"), PaymentError("b")])

    failed = await failure(app, work)
    assert (failed.error_type, failed.message) == ("ExceptionGroup", "two at once (2 sub-exceptions)")
    assert "ValueError: a: one" in failed.traceback


@pytest.mark.parametrize("reason", ["no such user", "card: declined", "declined"])
async def test_a_reason_that_the_handler_gave_has_no_error_type(app, reason):
    @app.job
    async def work() -> None:
        raise Fail(reason)

    failed = await failure(app, work)
    assert (failed.state, failed.error_type, failed.message) == ("failed", None, reason)


async def test_a_run_that_took_too_long_is_reported_as_such(app):
    @app.job(max_attempts=1, timeout="50ms")
    async def work() -> None:
        await asyncio.sleep(3600)

    failed = await failure(app, work)
    assert (failed.error_type, failed.message.startswith("timed out")) == ("TimeoutError", True)


async def test_a_canceled_job_is_reported_with_its_reason(app, database):
    @app.job
    async def by_itself() -> None:
        raise Cancel("not needed")

    async with serving(app):
        handle = await by_itself.enqueue()
        with pytest.raises(JobCanceled, match="not needed") as canceled:
            await handle.result(timeout=30)
    assert (canceled.value.job_id, canceled.value.reason) == (handle.id, "not needed")
    by_hand = await by_itself.enqueue()
    waiting = asyncio.create_task(by_hand.result())
    await until(lambda: database.sql("select count(*) from tenure.watches where job_id = %s", by_hand.id), is_=[(1,)])
    assert await by_hand.cancel("changed my mind")
    with pytest.raises(JobCanceled) as canceled:
        await waiting
    assert "changed my mind" in canceled.value.reason


async def test_a_timeout_of_the_wait_is_reported_and_the_job_continues(app):
    go_on = asyncio.Event()

    @app.job
    async def work() -> str:
        await go_on.wait()
        return "done"

    handle = await work.enqueue()
    with pytest.raises(ResultTimeout, match="it is pending"):
        await handle.result(timeout=0)
    async with serving(app):
        await until(lambda: running(handle))
        with pytest.raises(TimeoutError) as late:
            await handle.result(timeout="50ms")
        assert (late.value.state, late.value.job_id) == ("running", handle.id)
        go_on.set()
        assert await handle.result(timeout=30) == "done"


async def running(handle):
    return (await handle.status()).state == "running"


async def test_a_job_that_is_tried_again_and_snoozed_is_waited_for(app):
    @app.job(retry=AT_ONCE)
    async def work(ctx: Context) -> int:
        if ctx.fence == 1:
            raise PaymentError
        if ctx.fence == 2:
            raise Snooze("10ms")
        return ctx.fence

    async with serving(app):
        assert await (await work.enqueue()).result(timeout=30) == 3


async def test_a_job_that_is_not_there_is_reported_as_such(app, database):
    @app.job
    async def work() -> None: ...

    stranger = Handle(uuid4(), "work", app._runtime)
    for ask in (stranger.result, stranger.status, stranger.report):
        with pytest.raises(JobNotFound) as missing:
            await ask()
        assert missing.value.job_id == stranger.id
    assert await stranger.progress() is None
    handle = await work.enqueue()
    waiting = asyncio.create_task(handle.result())
    await until(lambda: database.sql("select count(*) from tenure.watches"), is_=[(1,)])
    await handle.delete()
    with pytest.raises(JobNotFound):
        await waiting


async def test_a_handle_of_a_kind_that_this_app_does_not_know_gives_plain_values(app, database):
    [job] = database.enqueue({"kind": "strange"})
    claim = database.claim(database.worker(), kinds=["strange"])
    database.run(jobs.finish(claim.finished(output={"a": [1, 2]})))
    assert await Handle(UUID(job), "strange", app._runtime).result() == {"a": [1, 2]}


async def test_a_handle_of_a_kind_that_this_app_does_not_know_gives_none_where_there_is_no_output(app, database):
    [job] = database.enqueue({"kind": "strange"})
    claim = database.claim(database.worker(), kinds=["strange"])
    database.run(jobs.finish(claim.finished()))
    assert await Handle(UUID(job), "strange", app._runtime).result(timeout=30) is None


async def test_a_job_that_was_dead_lettered_because_its_processes_died_has_no_error_type(app, database):
    [job] = database.enqueue({"kind": "strange"})
    claim = database.claim(database.worker(), kinds=["strange"])
    error = "quarantined: its process died 3 times while running it, the last time: signal SIGKILL"
    database.run(jobs.move(claim.outcomes(state="dead_letter", what="crashed", error=error)))
    with pytest.raises(JobFailed) as failed:
        await Handle(UUID(job), "strange", app._runtime).result()
    assert (failed.value.error_type, failed.value.message) == (None, error)


async def test_plain_threads_use_the_sync_methods(app):
    @app.job
    async def work(ctx: Context, n: int) -> Receipt:
        ctx.progress(50, "half")
        if n < 0:
            raise Fail("negative")
        return Receipt(number=n)

    def ask(n):
        handle = work.enqueue_sync(n)
        return handle.result_sync(timeout=30).number, handle.status_sync().state, handle.progress_sync().message

    def ask_in_vain():
        handle = work.using(delay="1h").enqueue_sync(1)
        with pytest.raises(ResultTimeout):
            handle.result_sync(timeout="20ms")
        assert handle.cancel_sync("enough")
        with pytest.raises(JobCanceled):
            handle.result_sync()
        with pytest.raises(JobFailed, match="negative"):
            work.enqueue_sync(-1).result_sync(timeout=30)
        return True

    async with serving(app):
        asked = [asyncio.to_thread(ask, n) for n in range(5)]
        answers = await asyncio.gather(*asked, asyncio.to_thread(ask_in_vain))
    await asyncio.to_thread(app._portal.close)
    assert answers == [*((n, "completed", "half") for n in range(5)), True]
