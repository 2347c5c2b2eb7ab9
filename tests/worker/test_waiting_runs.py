"""Jobs that are claimed before there is a slot for them: how many, in which order, and that they never get stuck."""

from __future__ import annotations

import asyncio
import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tenure.worker.run import waiting_runs
from tenure.worker.run.waiting_runs import LONGEST_WAIT, MOST_AHEAD, WaitingRuns
from tests.waiting import until


def run(priority: int = 50) -> Any:
    return SimpleNamespace(job=SimpleNamespace(priority=priority))


def taught(concurrency: int, seconds: float) -> WaitingRuns:
    waiting = WaitingRuns(concurrency)
    for _ in range(500):
        waiting.learn(seconds)
    return waiting


@pytest.mark.parametrize(("seconds", "ahead"), [(0.0001, MOST_AHEAD), (0.002, 100), (0.01, 20), (0.02, 0), (5.0, 0)])
def test_as_many_are_claimed_ahead_as_run_within_a_few_milliseconds(seconds, ahead):
    assert taught(10, seconds).allowance == pytest.approx(ahead, abs=1)


def test_nothing_is_claimed_ahead_before_it_is_known_how_long_jobs_take():
    assert WaitingRuns(10).allowance == 0


def test_one_long_run_after_many_short_ones_stops_claiming_ahead_for_some_time():
    waiting = taught(10, 0.0001)
    waiting.learn(5.0)
    assert waiting.allowance == 0
    for _ in range(200):
        waiting.learn(0.0001)
    assert waiting.allowance == MOST_AHEAD


def test_a_higher_priority_goes_first_and_equals_keep_their_order():
    waiting = WaitingRuns(1)
    low, high, second_high, lower = run(25), run(75), run(75), run(0)
    for one in (low, high, second_high, lower):
        waiting.add(one)
    assert [waiting.next() for _ in range(4)] == [high, second_high, low, lower]


def test_runs_that_get_no_slot_are_taken_out_together():
    waiting = taught(10, 0.0001)
    first, second = run(), run()
    waiting.add(first)
    waiting.add(second)
    assert list(waiting.take_stuck(time.monotonic())) == []
    assert list(waiting.take_stuck(time.monotonic() + LONGEST_WAIT)) == [first, second]
    assert len(waiting) == 0
    assert waiting.allowance == 0


@pytest.fixture
async def app(app):
    yield app
    await app.close()


def held(database: Any) -> int:
    return int(database.sql("select count(*) from tenure.jobs where state = 'running'")[0][0])


async def test_with_one_slot_many_short_jobs_are_claimed_at_a_time_and_run_in_order(app, database):
    ran: list[int] = []
    most = 0

    @app.job
    async def work(n: int) -> None:
        ran.append(n)

    async with app.running(concurrency=1):
        await app.enqueue_many([work.call(n) for n in range(600)])
        while len(ran) < 600:
            most = max(most, held(database))
            await asyncio.sleep(0)
        await until(lambda: held(database), is_=0)
    assert ran == list(range(600))
    assert most > 1


async def test_jobs_that_wait_behind_long_ones_are_requeued_and_run_elsewhere(app, database):
    """The slot is taken by a job that does not end; what was claimed ahead must not wait for it."""
    release, ran = asyncio.Event(), []

    @app.job
    async def work(n: int) -> None:
        if n == 1:
            await release.wait()
        ran.append(n)

    async with app.running(concurrency=1):
        await app.enqueue_many([work.call(0) for _ in range(300)])
        await until(lambda: len(ran), is_=300)
        await app.enqueue_many([work.call(1), *(work.call(2) for _ in range(20))])
        await until(lambda: held(database), is_=1)
        waiting = "select count(*) filter (where attempt = 0), count(*) from tenure.jobs where state = 'pending'"
        await until(lambda: database.sql(waiting), is_=[(20, 20)])
        async with app.running(concurrency=1):
            await until(lambda: ran.count(2), is_=20)
        release.set()
        await until(lambda: ran.count(1), is_=1)


async def test_a_stop_requeues_what_waits_for_a_slot_without_spending_an_attempt(app, database):
    began, stopped, ran = asyncio.Event(), asyncio.Event(), []

    @app.job
    async def work(n: int) -> None:
        if n == 1:
            began.set()
            await stopped.wait()
        ran.append(n)

    async with app.running(concurrency=1):
        await app.enqueue_many([work.call(0) for _ in range(300)])
        await until(lambda: len(ran), is_=300)
        await app.enqueue_many([work.call(1), *(work.call(2) for _ in range(20))])
        await began.wait()  # the outcomes of the first jobs may not be written yet, so rows of running jobs tell nothing
        asyncio.get_running_loop().call_later(0.05, stopped.set)
    counts = database.sql("select count(*), max(attempt), max(crashes) from tenure.jobs")[0]
    assert held(database) == 0
    assert counts[0] == 20 - ran.count(2)
    assert counts[1:] in ((0, 0), (None, None))


async def test_a_canceled_job_that_waits_for_a_slot_never_starts(app, database, caplog, monkeypatch):
    monkeypatch.setattr(waiting_runs, "LONGEST_WAIT", 600.0)
    monkeypatch.setattr(waiting_runs, "AHEAD", 600.0)  # otherwise as many are claimed as this machine runs in 20 ms
    caplog.set_level(logging.INFO, "tenure")
    release, ran = asyncio.Event(), []

    @app.job
    async def work(n: int) -> None:
        if n == 1:
            await release.wait()
        ran.append(n)

    async with app.running(concurrency=1):
        await app.enqueue_many([work.call(0) for _ in range(300)])
        await until(lambda: len(ran), is_=300)
        await work.enqueue(1)
        others = await app.enqueue_many([work.call(2) for _ in range(5)])
        await until(lambda: held(database), is_=6)
        for handle in others:
            await handle.cancel()
        await until(lambda: caplog.text.count("aborted: canceled"), is_=5)
        release.set()
        await until(lambda: ran.count(1), is_=1)
        await until(lambda: held(database), is_=0)
    assert ran.count(2) == 0
