"""A call is an immutable value; its JSON is made when it is sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tenure import ConfigError, InvalidPayload, Tenure
from tenure.client.calls import Sender, plain_job, to_json


@pytest.fixture
def work():
    app = Tenure()  # nothing here needs a database

    @app.job(queue="mail", priority="high", capability="smtp", max_attempts=5)
    async def work(n: int = 1) -> None: ...

    return work


def sent(*calls):
    return json.loads(to_json(calls))


def test_a_call_is_sent_with_all_its_fields(work):
    at = datetime(2030, 1, 1, tzinfo=UTC)
    call = work.using(run_at=at, timeout="30s", key="k", key_for="live", auth={"user": 1}, meta={"a": 1}).call(2)
    [job] = sent(call)
    assert job.pop("by") == call.sender.by
    assert job == {
        "id": call.id.hex,
        "kind": "work",
        "queue": "mail",
        "priority": 75,
        "capability": "smtp",
        "max_attempts": 5,
        "timeout": 30.0,
        "run_at": "2030-01-01T00:00:00+00:00",
        "key": "k",
        "key_for": "live",
        "auth": {"user": 1},
        "meta": {"a": 1},
        "input": {"n": 2},
    }


def test_fields_that_equal_the_defaults_of_the_schema_are_not_sent():
    app = Tenure()

    @app.job
    async def plain() -> None: ...

    [job] = sent(plain.call())
    assert set(job) == {"id", "kind", "by", "input"}


NOT_PLAIN = [
    {"key": "k"},
    {"delay": 1},
    {"run_at": datetime(2030, 1, 1, tzinfo=UTC)},
    {"expires": 60},
    {"expires": datetime(2030, 1, 1, tzinfo=UTC)},
    {"after": ["0198f000-0000-7000-8000-000000000001"]},
]


def test_a_plain_call_alone_is_sent_without_a_list(work):
    call = work.using(timeout="30s", auth={"user": 1}, meta={"a": 1}, queue="other").call(2)
    assert [json.loads(plain_job([call]) or "")] == sent(call)
    assert plain_job([call, work.call(3)]) is None
    assert plain_job([]) is None


@pytest.mark.parametrize("options", NOT_PLAIN, ids=str)
def test_a_call_with_a_key_blockers_or_a_time_is_not_plain(work, options):
    assert plain_job([work.using(**options).call(2)]) is None


def test_a_call_of_a_running_job_is_not_plain_because_its_claim_is_checked(work):
    assert plain_job([work.call(2)._replace(sender=Sender("me", str(uuid4()), str(uuid4())))]) is None


def test_using_a_connection_makes_the_same_calls_as_without(work):
    with_one, without = work.using(conn=object()).call(2), work.call(2)
    assert with_one._replace(id=without.id) == without


def test_a_call_cannot_be_changed_but_copied_with_more_meta(work):
    call = work.using(meta={"tenant": 7}).call()
    changed = call.with_meta(team="a")
    with pytest.raises(AttributeError):
        call.input = "{}"
    assert [job["meta"] for job in sent(call, changed)] == [{"tenant": 7}, {"tenant": 7, "team": "a"}]
    assert changed.id == call.id
    with pytest.raises(InvalidPayload, match="the meta of job 'work'"):
        call.with_meta(bad=object())


def test_headers_are_sent_in_the_system_data_and_not_in_meta(work):
    call = work.using(meta={"tenant": 7}).call()
    traced = call.with_headers({"traceparent": "00-1", "x": "old"}).with_headers(x="new", é='"')
    [plain, job] = sent(call, traced)
    assert "system" not in plain
    assert job == {**plain, "system": {"headers": {"traceparent": "00-1", "x": "new", "é": '"'}}}
    assert json.loads(plain_job([traced]) or "") == job
    assert dict(traced.headers) == job["system"]["headers"]
    assert call.headers == {}
    with pytest.raises(TypeError):
        traced.headers["x"] = "other"


@pytest.mark.parametrize("headers", [{"a": 1}, {1: "a"}, {"a": None}, {"a": "\x00"}, {"a": "\ud800"}], ids=repr)
def test_headers_that_are_not_texts_which_can_be_stored_are_refused(work, headers):
    with pytest.raises(InvalidPayload, match="the headers of job 'work'"):
        work.call().with_headers(headers)


def test_another_sender_can_be_named(work):
    [job] = sent(work.call().sent_by("ann"))
    assert job["by"] == "ann"


def test_meta_is_taken_as_it_was_when_the_option_was_given(work):
    meta = {"a": 1}
    bound = work.using(meta=meta)
    meta["a"] = 2
    [job] = sent(bound.call())
    assert job["meta"] == {"a": 1}


def test_a_single_call_is_refused_by_enqueue_many():
    app = Tenure()

    @app.job
    async def plain() -> None: ...

    with pytest.raises(ConfigError, match="give a list of calls"):
        app.enqueue_many_sync(plain.call())
