"""What a handler writes, hands on and returns, and that its job is done: all of it at once, or nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from tenure import Context, RunLost
from tests.transactions.handlers import ATOMIC, EXECUTORS
from tests.waiting import until
from tests.worker.serving import serving


def slow_in_processes(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if "process" in name else name for name in names]


EVERYWHERE = pytest.mark.parametrize("executor", slow_in_processes(EXECUTORS))


@pytest.fixture
async def worker(app):
    async with serving(app, queues=["default"], concurrency=2) as worker:
        yield worker


@pytest.fixture
def contexts(app):
    """Of all runs up to now."""
    seen: dict[UUID, Context] = {}

    @app.middleware
    async def see(ctx, call_next):
        seen[ctx.job_id] = ctx
        return await call_next()

    yield seen
    app.kinds.middleware.remove(see)


@pytest.fixture
def lost(app):
    seen: list[RunLost] = []
    app.on(RunLost)(seen.append)
    yield seen
    app.events.__init__()


@pytest.mark.parametrize("executor", ["in_loop", "in_thread", "in_process", *slow_in_processes(["in_process_loop", *ATOMIC])])
async def test_rows_result_follow_up_and_completion_appear_at_the_same_moment(worker, shop, points, executor):
    points.hold("left")
    handle = await (EXECUTORS | ATOMIC)[executor].enqueue("ada")
    await points.reached("left")
    assert shop.seen("ada") == (0, 0, "running")

    watching = asyncio.create_task(asyncio.to_thread(observe, shop))
    points.go("left")

    assert await watching <= {(0, 0, "running"), (1, 1, "completed")}
    assert len(shop.transactions("ada")) == 1
    assert await handle.result() == "paid ada"
    assert shop.of("ada", "attempt", "fence", "crashes") == (1, 1, 0)


def observe(shop):
    seen = set()
    while not any(state == "completed" for _, _, state in seen):
        seen.add(shop.seen("ada"))
    return seen


async def test_before_the_block_has_ended_no_other_session_sees_anything_either(worker, shop, points):
    points.hold("handed on")
    await EXECUTORS["in_loop"].enqueue("ada")
    await points.reached("handed on")
    assert shop.seen("ada") == (0, 0, "running")
    points.go("handed on")
    await shop.comes_to("ada", 1, 1, "completed")


UNDONE = {
    "raises": "dead_letter",
    "raises Fail": "failed",
    "raises Cancel": "canceled",
    "raises Snooze": "scheduled",
}
KEPT = {"returns Fail": "failed", "returns Cancel": "canceled", "returns Snooze": "scheduled"}


@EVERYWHERE
async def test_any_error_in_the_block_or_after_it_undoes_all_of_it(app, worker, shop, executor):
    job = EXECUTORS[executor]
    wanted = {f"{how} inside": (0, 0, state) for how, state in UNDONE.items()}
    wanted |= {f"{how} after": (0, 0, state) for how, state in UNDONE.items()}
    wanted["returns a wrong type after"] = (0, 0, "dead_letter")
    await app.enqueue_many([job.call(name, **dict([reversed(name.rsplit(" ", 1))])) for name in wanted])

    await until(lambda: {name: shop.seen(name) for name in wanted}, is_=wanted)

    for name, error in {"raises inside": "ValueError: no money", "returns a wrong type after": "InvalidOutput"}.items():
        assert error in shop.of(name, "error")[0]
        assert shop.of(name, "attempt") == (3,)


@EVERYWHERE
async def test_an_outcome_that_is_returned_is_committed_with_the_rest(app, worker, shop, executor):
    job = EXECUTORS[executor]
    wanted = {how: (1, 1, state) for how, state in KEPT.items()}
    await app.enqueue_many([job.call(name, after=name) for name in wanted])
    await until(lambda: {name: shop.seen(name) for name in wanted}, is_=wanted)
    assert shop.of("returns Snooze", "attempt") == (0,)


@pytest.mark.parametrize("executor", slow_in_processes(ATOMIC))
async def test_an_atomic_job_that_raises_has_written_nothing(app, worker, shop, executor):
    job = ATOMIC[executor]
    wanted = {"raises": (0, 0, "dead_letter"), "raises Fail": (0, 0, "failed"), "returns Fail": (1, 1, "failed")}
    await app.enqueue_many([job.call(name, inside=name) for name in wanted])
    await until(lambda: {name: shop.seen(name) for name in wanted}, is_=wanted)


@EVERYWHERE
async def test_a_run_whose_job_was_taken_away_commits_nothing_and_the_next_run_all(worker, shop, points, lost, executor):
    points.hold("leaving")
    await EXECUTORS[executor].enqueue("ada")
    await points.reached("leaving")

    shop.take_away("ada")
    points.go("leaving")

    await until(lambda: {event.fence for event in lost}, is_={1})
    assert shop.seen("ada") == (0, 0, "running")
    shop.requeue("ada")
    await shop.comes_to("ada", 1, 1, "completed")
    assert [entry["fence"] for entry in points.passed("left")] == [1, 3]


@EVERYWHERE
async def test_a_job_canceled_meanwhile_has_written_nothing(worker, shop, points, executor):
    points.hold("leaving")
    handle = await EXECUTORS[executor].enqueue("ada")
    await points.reached("leaving")

    assert await handle.cancel("no need")
    points.go("leaving")

    await until(lambda: idle_handlers(shop))
    assert shop.seen("ada") == (0, 0, "canceled")


@EVERYWHERE
async def test_a_run_that_takes_too_long_has_written_nothing_and_the_next_one_all(worker, contexts, shop, points, executor):
    points.hold("leaving")
    handle = await EXECUTORS[executor].enqueue("ada")
    await points.reached("leaving")

    contexts[handle.id]._run.deadline = time.monotonic()

    await points.reached("left", fence=2)
    await shop.comes_to("ada", 1, 1, "completed")
    [(what, attempt, error)] = shop.sql("select what, attempt, error from tenure.incidents")
    assert (what, attempt, "TimeoutError: timed out" in error) == ("timed_out", 1, True)
    assert [entry["fence"] for entry in points.passed("left")] == [2]


def idle_handlers(shop):
    """No connection of a handler has a transaction open."""
    look = """select count(*) from pg_stat_activity
               where datname = current_database() and application_name = 'tenure handler' and state <> 'idle'"""
    return shop.sql(look) == [(0,)]
