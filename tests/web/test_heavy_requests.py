"""Large bodies and slow checks: a few are answered at a time, and those of one caller wait for each other only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from tenure.web import heavy_requests, pipeline
from tenure.web.argument_checks import MOST_AT_ONCE
from tenure.web.heavy_requests import AT_ONCE, LARGE, HeavyRequests, Turn
from tenure.web.problems import Problem
from tenure.web.security.authentication import counted_as
from tenure.web.security.principal import Principal
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.serving import Serving
from tests.web.test_argument_checks import publish

SMALL = b'{"args": {"all": [1]}}'
LARGE_BODY = b'{"args": {"all": []}}'.ljust(2 * LARGE)
JSON = {"content-type": "application/json"}
SUM = "/jobs/sum/dispatch"


@pytest.fixture
def read(monkeypatch) -> list[int]:
    """The sizes of the bodies that were parsed."""
    sizes: list[int] = []
    parse = pipeline.parse_body

    def noting(request: Any, raw: bytes, *given: Any, **more: Any) -> Any:
        sizes.append(len(raw))
        return parse(request, raw, *given, **more)

    monkeypatch.setattr(pipeline, "parse_body", noting)
    return sizes


async def clients(serving: Serving, sql, *names: str) -> tuple[HeavyRequests, list[Any]]:
    await publish(sql, "sum", {"properties": {"all": {"type": "array", "items": {"type": "integer"}}}})
    web_app = WebApp(serving.app, WebOptions())
    server = await serving.serve(web_app)
    found = [await server.client(await serving.token("operate", name), **JSON) for name in names]
    return web_app.services().heavy_requests, found


@asynccontextmanager
async def taken(requests: HeavyRequests, *callers: str) -> AsyncIterator[list[Turn]]:
    turns = [Turn(requests, caller) for caller in callers]
    try:
        for turn in turns:
            await turn.take(1)
        yield turns
    finally:
        for turn in turns:
            turn.end()


def kept(requests: HeavyRequests) -> list[int]:
    return sorted(line.kept for line in requests.lines.values())


async def test_a_large_body_is_read_when_others_have_been_answered(serving: Serving, sql, read):
    """All that had arrived were read at once, each into up to fifty times its size."""
    requests, [web] = await clients(serving, sql, "first")
    async with taken(requests, *map(str, range(AT_ONCE))):
        large = asyncio.create_task(web.post(SUM, content=LARGE_BODY))
        await until(lambda: len(LARGE_BODY) in kept(requests))
        assert (await web.post(SUM, content=SMALL)).status_code == 202
        assert read == [len(SMALL)]
    assert (await large).status_code == 202
    assert read == [len(SMALL), len(LARGE_BODY)]
    assert not requests.lines


async def test_large_bodies_of_a_caller_are_read_one_after_the_other(serving: Serving, sql, read, monkeypatch):
    requests, [first, second] = await clients(serving, sql, "first", "second")
    handled, may_end = asyncio.Semaphore(0), asyncio.Event()
    carried_out = pipeline.Endpoint._carried_out

    async def waiting(*given: Any) -> Any:
        handled.release()
        await may_end.wait()
        return await carried_out(*given)

    monkeypatch.setattr(pipeline.Endpoint, "_carried_out", waiting)
    sent = [asyncio.create_task(web.post(SUM, content=LARGE_BODY)) for web in (first, first, first, second)]
    for _ in range(2):
        await handled.acquire()
    await until(lambda: kept(requests), is_=[len(LARGE_BODY), 3 * len(LARGE_BODY)])
    assert len(read) == 2  # one of each
    may_end.set()
    assert [(await one).status_code for one in sent] == [202] * 4
    assert not requests.lines


async def test_a_caller_has_a_few_large_bodies_at_a_time(serving: Serving, sql, monkeypatch):
    monkeypatch.setattr(heavy_requests, "MOST_KEPT", 3 * len(LARGE_BODY))
    requests, [first, second] = await clients(serving, sql, "first", "second")
    async with taken(requests, *map(str, range(AT_ONCE))):
        waiting = [asyncio.create_task(web.post(SUM, content=LARGE_BODY)) for web in (first, first, first, second)]
        await until(lambda: kept(requests), is_=[*[1] * AT_ONCE, len(LARGE_BODY), 3 * len(LARGE_BODY)])
        refused = await first.post(SUM, content=LARGE_BODY)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert refused.json()["detail"] == (
            "other requests that you have sent, with large bodies or slow checks, wait for their answers: wait 5 s and try again"
        )
        assert (await first.post(SUM, content=SMALL)).status_code == 202
    assert [(await one).status_code for one in waiting] == [202] * 4
    assert (await first.post(SUM, content=LARGE_BODY)).status_code == 202
    assert not requests.lines


async def test_a_large_body_counts_before_all_of_it_has_arrived(serving: Serving, sql):
    """With the size that it is to have; in chunks, with the largest that it may have."""
    requests, [web] = await clients(serving, sql, "first")
    may_end = asyncio.Event()

    async def parts(begin: bytes, rest: bytes) -> AsyncIterator[bytes]:
        yield begin
        await may_end.wait()
        yield rest

    begin, rest = LARGE_BODY[: LARGE + 1], LARGE_BODY[LARGE + 1 :]
    length = {"content-length": str(len(LARGE_BODY))}
    whole = asyncio.create_task(web.post(SUM, content=parts(begin, rest), headers=length))
    await until(lambda: kept(requests), is_=[len(LARGE_BODY)])
    chunked = asyncio.create_task(web.post(SUM, content=parts(begin, rest)))
    await until(lambda: kept(requests), is_=[len(LARGE_BODY) + 1024 * 1024])
    may_end.set()
    assert [(await one).status_code for one in (whole, chunked)] == [202, 202]
    assert not requests.lines


async def test_a_large_body_whose_turn_does_not_come_is_refused_as_one_too_many(serving: Serving, sql, read, monkeypatch):
    """Not with 503, as if PostgreSQL were away."""
    monkeypatch.setattr(heavy_requests, "TURN_WITHIN", 0.1)
    requests, [web] = await clients(serving, sql, "first")
    async with taken(requests, *map(str, range(AT_ONCE))):
        refused = await web.post(SUM, content=LARGE_BODY)
    assert (refused.status_code, refused.headers["retry-after"], read) == (429, "5", [])
    assert (await web.post(SUM, content=LARGE_BODY)).status_code == 202
    assert not requests.lines


async def test_slow_checks_of_small_bodies_wait_for_others_of_the_same_token_only(serving: Serving, sql, monkeypatch):
    """Any number of them used to wait in one line, each for seconds, and those of others behind them."""
    monkeypatch.setattr(heavy_requests, "MOST_KEPT", 3 * heavy_requests.CHECKED)
    requests, [first, second] = await clients(serving, sql, "first", "second")
    thread, ended = heavy_requests._thread, threading.Event()
    slow = {"args": {"all": [1] * 2 * MOST_AT_ONCE}}
    thread.submit(ended.wait)
    try:
        waiting = [asyncio.create_task(web.post(SUM, json=slow)) for web in (first, first, first, second)]
        await until(lambda: kept(requests), is_=[heavy_requests.CHECKED, 3 * heavy_requests.CHECKED])
        await until(thread._work_queue.qsize, is_=2)  # one of each token
        assert (await first.post(SUM, json=slow)).status_code == 429
        assert (await first.post(SUM, content=SMALL)).status_code == 202
        assert thread._work_queue.qsize() == 2
    finally:
        ended.set()
    assert [(await one).status_code for one in waiting] == [202] * 4
    assert not requests.lines
    assert (await first.post(SUM, json=slow)).status_code == 202


async def test_a_check_that_does_not_end_in_time_is_refused_as_one_too_many(monkeypatch):
    """The request was given up instead, with 503 as if PostgreSQL were away."""
    monkeypatch.setattr(heavy_requests, "TURN_WITHIN", 0.1)
    requests, ended = HeavyRequests(), threading.Event()
    turns = [Turn(requests, "first") for _ in range(2)]
    heavy_requests._thread.submit(ended.wait)
    try:
        outcomes = await asyncio.wait_for(asyncio.gather(*(turn.run(int) for turn in turns), return_exceptions=True), 20)
    finally:
        ended.set()
    assert [isinstance(error, Problem) and (error.status, error.headers) for error in outcomes] == [
        (429, {"Retry-After": "5"})
    ] * 2
    for turn in turns:
        turn.end()
    assert not requests.lines


async def test_a_request_that_is_no_longer_wanted_does_not_wait():
    requests = HeavyRequests()
    turns = [Turn(requests, "first") for _ in range(3)]
    await turns[0].take(1)
    waiting = [asyncio.create_task(turn.take(1)) for turn in turns[1:]]
    await until(lambda: kept(requests), is_=[3])
    waiting[0].cancel()
    await asyncio.gather(waiting[0], return_exceptions=True)
    turns[1].end()
    turns[0].end()
    await waiting[1]
    turns[2].end()
    assert not requests.lines
    assert requests.free._value == AT_ONCE


def test_trackers_count_together_by_their_address():
    """A user may have those of any number of jobs."""
    trackers = [Principal(name=f"tracker {n}", via="tracker") for n in range(2)]
    connection = HTTPConnection({"type": "http", "client": ("192.0.2.1", 1)})
    assert {counted_as(one, connection) for one in trackers} == {"tracker 192.0.2.1"}
