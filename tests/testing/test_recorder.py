"""`Recorder`: no database at all."""

from __future__ import annotations

import pytest

from tenure import InvalidInput, Tenure
from tenure.testing import Recorder

app = Tenure("postgresql://nowhere.invalid/test")


@app.job(queue="mail", key="to")
def send(to: str, text: str = "") -> None: ...


async def test_it_records_what_is_enqueued_in_all_ways():
    with Recorder(app) as recorder:
        handle = await send.enqueue("ann")
        send.enqueue_sync("bob", text="hi")
        await app.enqueue("send", {"to": "eve"})
        await app.enqueue_many([send.call("joe")])
        app.enqueue_many_sync([send.call("sue")])
        await app.enqueue("elsewhere", {"n": 1}, queue="other")
    assert [job.args["to"] for job in recorder.of(send)] == ["ann", "bob", "eve", "joe", "sue"]
    assert recorder.jobs[1].args == {"to": "bob", "text": "hi"}
    assert recorder.jobs[0].id == handle.id
    assert (recorder.jobs[-1].kind, recorder.jobs[-1].args, recorder.jobs[-1].queue) == ("elsewhere", {"n": 1}, "other")
    recorder.assert_enqueued(send, args={"to": "bob"}, times=1, queue="mail", key="bob")
    with pytest.raises(AssertionError, match="expected 1 times"):
        recorder.assert_enqueued(send, times=1)


def test_the_options_of_a_call():
    with Recorder(app) as recorder:
        send.using(delay="5m", priority="low", meta={"a": 1}, auth={"user": 1}).enqueue_sync("ann")
    [job] = recorder.jobs
    assert (job.delay, job.priority, job.meta, job.auth) == (300, 25, {"a": 1}, {"user": 1})


def test_the_headers_of_a_call():
    with Recorder(app) as recorder:
        app.enqueue_many_sync([send.call("ann").with_headers(traceparent="00-1"), send.call("bob")])
    assert [dict(job.headers) for job in recorder.jobs] == [{"traceparent": "00-1"}, {}]


def test_a_connection_is_not_used():
    with Recorder(app) as recorder:
        send.using(conn=object()).enqueue_sync("ann")
    assert len(recorder.jobs) == 1


def test_arguments_are_checked():
    with Recorder(app) as recorder, pytest.raises(InvalidInput):
        send.enqueue_sync(to=1)
    assert recorder.jobs == []


def test_recorders_can_be_nested():
    with Recorder(app) as outer:
        with Recorder(app) as inner:
            send.enqueue_sync("ann")
        send.enqueue_sync("bob")
    assert [job.args["to"] for job in inner.jobs + outer.jobs] == ["ann", "bob"]


def test_as_a_fixture(tenure_recorder):
    from tests.testing.shop import charge

    charge.enqueue_sync(7)
    tenure_recorder.assert_enqueued(charge, (7,), times=1)
