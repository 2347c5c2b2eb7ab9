"""Values that cannot be stored: an enqueue is refused, and a handler that produces one gets an error that can be read."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tenure import InvalidInput, InvalidPayload, JobCanceled
from tests.worker.handlers import DEEDS
from tests.worker.hostile import CLEAN, GARBLED, NOT_KEPT
from tests.worker.shared_worker import failure

pytestmark = pytest.mark.asyncio(loop_scope="module")

everywhere = pytest.mark.parametrize("executor", ["loop", "thread", "process"])
hostile_values = pytest.mark.parametrize("name", NOT_KEPT)
HELD = "select count(*) from tenure.all_jobs"


class Parcel(BaseModel):
    content: Any


@pytest.fixture(scope="module")
def keep(shared_worker):
    """A job that no worker runs."""

    @shared_worker.app.job(name="keep", queue="unserved")
    async def keep(content: Any) -> None: ...

    return keep


@pytest.fixture(scope="module")
def keep_parcel(shared_worker):
    @shared_worker.app.job(name="keep_parcel", queue="unserved")
    async def keep_parcel(parcel: Parcel) -> None: ...

    return keep_parcel


@pytest.fixture
def nothing_written(shared_worker):
    before = shared_worker.sql(HELD)
    yield
    assert shared_worker.sql(HELD) == before


def refused():
    return pytest.raises((InvalidInput, InvalidPayload), match=r"\w+ \w+")


@hostile_values
async def test_input_that_cannot_be_kept_is_refused(shared_worker, keep, keep_parcel, name):
    for enqueue in (keep.enqueue, keep_parcel.enqueue):
        await enqueue(Parcel(content=1))  # from here on, inputs of this job are known to be readable
    before = shared_worker.sql(HELD)
    with refused():
        await keep.enqueue(NOT_KEPT[name]())
    with refused():
        await keep_parcel.enqueue(Parcel.model_construct(content=NOT_KEPT[name]()))
    with refused():
        keep.enqueue_sync(NOT_KEPT[name]())
    assert shared_worker.sql(HELD) == before


@hostile_values
async def test_one_refused_input_among_many_refuses_them_all(shared_worker, keep, nothing_written, name):
    with refused():
        await shared_worker.app.enqueue_many(keep.call(content) for content in [1, NOT_KEPT[name](), 2])


@hostile_values
@pytest.mark.parametrize("option", ["meta", "auth"])
async def test_meta_and_auth_that_cannot_be_kept_are_refused(shared_worker, keep, nothing_written, option, name):
    with refused():
        await keep.using(**{option: {"a": NOT_KEPT[name]()}}).enqueue(1)


@pytest.mark.parametrize("option", ["queue", "key", "capability"])
async def test_names_that_cannot_be_kept_are_refused(shared_worker, keep, nothing_written, option):
    with pytest.raises(Exception, match=r"NUL|half a character|surrogate"):
        await keep.using(**{option: GARBLED}).enqueue(1)


@pytest.mark.parametrize("executor", ["loop", "process"])
@hostile_values
async def test_a_result_that_cannot_be_kept_is_an_error_of_the_job(shared_worker, executor, name):
    handle = await DEEDS[executor].enqueue(f"return {name}")
    failed = await failure(handle)
    assert (failed.state, failed.error_type in ("InvalidOutput", "InvalidPayload")) == ("dead_letter", True)
    assert "the result of job" in failed.message
    await still_works(executor)


async def still_works(executor):
    await (await DEEDS[executor].enqueue("return nothing")).result("30s")


@everywhere
@pytest.mark.parametrize(
    ("deed", "looks_right"),
    [
        ("log garbled", lambda line: line["message"] == CLEAN and line["fields"] == {f"name {CLEAN}": f"value {CLEAN}"}),
        ("log odd numbers", lambda line: line["fields"] == {"nan": "nan", "inf": "inf", "size": 10**30}),
        ("log a number too long for Python", lambda line: "size" in line["fields"]),
        ("log odd values", lambda line: "Wordless" in line["fields"]["wordless"] and line["fields"]["nothing"] is None),
        ("log a wordless message", lambda line: "Wordless" in line["message"]),
        ("log long", lambda line: 100 < len(line["message"]) <= 2000 and 100 < len(line["fields"]["wide"]) <= 2000),
    ],
)
async def test_anything_a_handler_logs_is_kept_as_far_as_possible(shared_worker, executor, deed, looks_right):
    handle = await DEEDS[executor].enqueue(deed)
    await handle.result("30s")
    before, line = shared_worker.lines(handle)
    assert before["message"] == "before"
    assert looks_right(line), line
    assert (await handle.progress()).message == "logged"


@everywhere
@pytest.mark.parametrize(
    ("deed", "looks_right"),
    [
        ("garbled progress", lambda message: message == CLEAN),
        ("long progress", lambda message: message.startswith("ää") and len(message) <= 500),
    ],
)
async def test_any_progress_of_a_handler_is_kept_as_far_as_possible(shared_worker, executor, deed, looks_right):
    handle = await DEEDS[executor].enqueue(deed)
    await handle.result("30s")
    progress = await handle.progress()
    assert looks_right(progress.message), progress


@everywhere
@pytest.mark.parametrize(
    ("deed", "error_type", "told"),
    [
        ("raise garbled", "ValueError", CLEAN),
        ("raise long", "ValueError", "äää"),
        ("raise circle", "ValueError", "first"),
        ("raise noted", None, f"noted {CLEAN}"),
        ("raise wordless", "ValueError", ""),
        ("raise group", None, "KeyError: 'two'"),
        ("raise blank", "ValueError", ""),
    ],
)
async def test_any_error_of_a_handler_can_be_read(shared_worker, executor, deed, error_type, told):
    handle = await DEEDS[executor].enqueue(deed)
    failed = await failure(handle)
    assert failed.state == "dead_letter"
    assert told in failed.traceback
    assert "hostile.py" in failed.traceback
    assert len(failed.traceback) < 20_000
    if error_type:
        assert failed.error_type.rstrip(":") == error_type
    await still_works(executor)


@everywhere
@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("fail garbled", CLEAN),
        ("fail by one word", "declined"),
        ("fail with a colon", "declined: card expired"),
    ],
)
async def test_the_reason_of_a_failure_is_kept_as_it_was_said(shared_worker, executor, deed, message):
    failed = await failure(await DEEDS[executor].enqueue(deed))
    assert (failed.state, failed.error_type, failed.message) == ("failed", None, message)


@everywhere
@pytest.mark.parametrize("deed", ["fail long", "fail blank", "fail with an exception", "fail by a careless subclass"])
async def test_an_odd_reason_does_not_keep_a_job_from_failing(shared_worker, executor, deed):
    handle = await DEEDS[executor].enqueue(deed)
    failed = await failure(handle)
    assert failed.state in ("failed", "dead_letter")
    assert len(str(failed)) < 20_000
    assert (await handle.status()).crashes == 0
    await still_works(executor)


@everywhere
@pytest.mark.parametrize(("deed", "reason"), [("cancel garbled", CLEAN), ("cancel blank", " ")])
async def test_an_odd_reason_does_not_keep_a_job_from_canceling_itself(shared_worker, executor, deed, reason):
    handle = await DEEDS[executor].enqueue(deed)
    with pytest.raises(JobCanceled) as canceled:
        await handle.result("30s")
    assert canceled.value.reason.strip() == reason.strip()


@everywhere
async def test_a_snooze_beyond_the_end_of_time_is_an_error(shared_worker, executor):
    failed = await failure(await DEEDS[executor].enqueue("snooze for ever"))
    assert failed.state == "dead_letter"
    assert "between 0 and 100 years" in failed.message
    await still_works(executor)
