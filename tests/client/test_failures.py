"""What is known of a failed job: its error taken apart, when it failed, how far it was."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from tenure import Context, Fail, JobFailed, Retry
from tenure.model.failures import Failure
from tenure.model.payloads import MAX_TEXT, describe_exception
from tests.waiting import until
from tests.worker.serving import serving

AT_ONCE = Retry(max_attempts=2, initial="10ms", max_backoff="10ms", jitter=False)


class CardDeclined(Exception):
    pass


@pytest.fixture
async def app(app):
    yield app
    await app.close()


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


class Nameless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def group() -> BaseException:
    return ExceptionGroup("two at once", [ValueError("a: one"), CardDeclined("b")])


def chained() -> BaseException:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise CardDeclined("outer") from inner
    except CardDeclined as caught:
        return caught


REMOTE = "".join(traceback.format_exception(raised(ValueError("far away"))))

ERRORS = {
    "plain": (lambda: ValueError("no"), "ValueError", "ValueError", "no"),
    "of a module": (lambda: CardDeclined("no"), f"{__name__}.CardDeclined", "CardDeclined", "no"),
    "without a message": (CardDeclined, f"{__name__}.CardDeclined", "CardDeclined", ""),
    "several lines": (lambda: ValueError("a:\n\n  b\nc"), "ValueError", "ValueError", "a:\n\n  b\nc"),
    "a colon": (lambda: ValueError("card: declined"), "ValueError", "ValueError", "card: declined"),
    "a traceback for a message": (lambda: RuntimeError(REMOTE), "RuntimeError", "RuntimeError", REMOTE),
    "a group": (group, "ExceptionGroup", "ExceptionGroup", "two at once (2 sub-exceptions)"),
    "a cause": (chained, f"{__name__}.CardDeclined", "CardDeclined", "outer"),
    "a message that cannot be written": (Nameless, f"{__name__}.Nameless", "Nameless", "its message could not be written"),
    "a long message": (lambda: ValueError("x" * 100_000), "ValueError", "ValueError", "x" * 2000),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_taken_apart_as_it_was_put_together(case):
    make, path, name, message = ERRORS[case]
    text = describe_exception(raised(make()))
    failure = Failure.read(text)
    assert (failure.path, failure.type, failure.message) == (path, name, message)
    assert failure.traceback.startswith(("Traceback (most recent call last):\n", "  + Exception Group Traceback"))
    assert len(text) <= MAX_TEXT


def test_an_exception_that_was_never_raised_has_no_traceback():
    failure = Failure.read(describe_exception(TimeoutError("timed out: export may run for 0:00:01")))
    assert failure == Failure("TimeoutError", "timed out: export may run for 0:00:01")


def test_a_class_inside_a_function_has_a_name_too():
    class Inner(Exception):
        pass

    failure = Failure.read(describe_exception(raised(Inner("x"))))
    assert (failure.type, failure.message) == ("Inner", "x")
    assert failure.path.startswith(f"{__name__}.test_a_class_inside")


@pytest.mark.parametrize("case", [case for case in ERRORS if case not in ("a message that cannot be written", "a long message")])
def test_a_traceback_of_an_earlier_version_is_understood(case):
    """Rows from before have the traceback only. What a message hides there stays hidden."""
    make, path, _, message = ERRORS[case]
    failure = Failure.read("".join(traceback.format_exception(raised(make()))))
    if case == "a traceback for a message":
        assert failure.path == "ValueError"  # the reason why it is written otherwise now
    else:
        assert (failure.path, failure.message) == (path, message)


PLAIN = {
    "quarantined: its worker died 3 times while running it": (None, "quarantined: its worker died 3 times while running it"),
    "": (None, "no reason given"),
}


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_that_is_not_a_traceback_is_a_message(text):
    failure = Failure.read(text)
    assert (failure.type, failure.message, failure.traceback) == (*PLAIN[text], "")


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_dead_letter_shows_its_error_and_when_it_failed(app, client, database, run_in):
    async def on_the_loop() -> None:
        raise CardDeclined("4242\nagain")

    def in_a_thread() -> None:
        raise CardDeclined("4242\nagain")

    job = app.job(retry=AT_ONCE, name="charge")(on_the_loop if run_in == "loop" else in_a_thread)
    async with serving(app):
        handle = await job.enqueue()
        with pytest.raises(JobFailed) as failed:
            await handle.result("30s")
    status = await handle.status()
    assert (status.state, status.error_type, status.error_message) == ("dead_letter", "CardDeclined", "4242\nagain")
    assert status.error_class == f"{__name__}.CardDeclined"
    assert status.failed_at == database.sql("select max(at) from tenure.incidents")[0][0]
    assert status.started_at < status.failed_at
    [listed] = (await client.list(state="dead_letter")).jobs
    assert (listed.error_type, listed.failed_at) == ("CardDeclined", status.failed_at)
    assert database.sql("select failed_at from tenure.all_jobs") == [(status.failed_at,)]
    told = status.to_json()
    assert (told["error_type"], told["error_message"], told["failed_at"]) == (
        "CardDeclined",
        "4242\nagain",
        status.failed_at.isoformat(),
    )

    assert (failed.value.error_type, failed.value.error_message) == ("CardDeclined", "4242\nagain")
    assert failed.value.error_class == f"{__name__}.CardDeclined"
    [note] = failed.value.__notes__
    assert note.startswith("The traceback of its last attempt, in the worker:\nTraceback (most recent call last):")
    assert 'raise CardDeclined("4242' in note
    assert note in "".join(traceback.format_exception(failed.value))


async def test_a_failed_job_shows_its_reason_and_when_it_failed(app):
    @app.job
    async def work() -> None:
        raise Fail("ValueError: that is only what it looks like")

    async with serving(app):
        handle = await work.enqueue()
        with pytest.raises(JobFailed) as failed:
            await handle.result("30s")
    status = await handle.status()
    assert (status.error_type, status.error_message) == (None, "ValueError: that is only what it looks like")
    assert status.failed_at == status.finished_at
    assert not hasattr(failed.value, "__notes__")


async def test_a_job_that_is_tried_again_or_well_has_not_failed(app, database):
    @app.job
    async def fine() -> None: ...

    @app.job(retry=Retry(3, initial="1h", max_backoff="1h"))
    async def again() -> None:
        raise ValueError("not yet")

    async with serving(app):
        well, tried = await fine.enqueue(), await again.enqueue()
        await well.result("30s")
        await until(lambda: database.sql("select state from tenure.jobs") == [("retry",)])
    assert ((await well.status()).failed_at, (await well.status()).error_type) == (None, None)
    assert ((await tried.status()).failed_at, (await tried.status()).error_type) == (None, "ValueError")


async def test_a_canceled_job_has_no_error_of_a_type(app):
    @app.job
    async def work() -> None: ...

    handle = await work.enqueue()
    await handle.cancel("not needed", by="ann")
    status = await handle.status()
    assert (status.error, status.error_type, status.error_message) == ("canceled by ann: not needed", None, None)


async def test_progress_is_part_of_a_job_as_it_stands(app, client, database):
    go_on = asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        ctx.progress(40, "nearly half")
        await go_on.wait()

    waiting = await work.using(delay="1h").enqueue()
    async with serving(app):
        handle = await work.enqueue()
        await until(lambda: database.sql("select count(*) from tenure.progress") == [(1,)])
        status = await handle.status()
        go_on.set()
        await handle.result("30s")
    assert (status.progress_percent, status.progress_message) == (40, "nearly half")
    done = await handle.status()
    assert (done.progress_percent, done.progress_message) == (40, "nearly half")
    assert ((await waiting.status()).progress_percent, (await waiting.status()).progress_message) == (0, None)
    listed = {job.id: (job.progress_percent, job.progress_message) for job in (await client.list()).jobs}
    assert listed == {handle.id: (40, "nearly half"), waiting.id: (0, None)}
    assert database.sql("select progress_percent, progress_message from tenure.all_jobs order by 1") == [
        (0, None),
        (40, "nearly half"),
    ]
    assert done.to_json()["progress_percent"] == 40
    assert (await client.explain(waiting.id)).job.progress_percent == 0
    assert (await handle.report()).job.progress_percent == 40
