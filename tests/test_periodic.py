"""The one loop that sleeps and wakes."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tenure.periodic import FOREVER, PeriodicTask
from tenure.store import workers
from tenure.store.link import Link
from tests.waiting import until


async def test_a_wake_up_during_a_turn_is_not_lost():
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def turn() -> float:
        begun.set()
        await may_end.wait()
        return FOREVER

    beat = PeriodicTask("test", turn)
    running = asyncio.create_task(beat.run())
    await begun.wait()
    begun.clear()

    beat.wake()
    may_end.set()

    async with asyncio.timeout(5):
        await begun.wait()
    running.cancel()


WAITING = """select pid from pg_stat_activity
    where datname = current_database() and application_name = 'tenure lease' and wait_event_type = 'Lock'"""


@pytest.mark.parametrize("beats", [True, False])
async def test_a_task_that_is_cancelled_in_the_moment_its_connection_breaks_ends(dsn, database_target, sql, beats):
    """The driver then tells of the broken connection only."""
    link = Link(database_target, "lease")

    async def turn() -> float:
        await link.fetch(workers.count_held())
        return FOREVER

    with psycopg.connect(dsn) as blocker:
        blocker.execute("lock table tenure.workers in access exclusive mode")
        task = asyncio.create_task(PeriodicTask("test", turn).run() if beats else turn())
        [(pid,)] = await until(lambda: sql(WAITING))
        sql("select pg_terminate_backend(%s)", pid)
        task.cancel()
        await asyncio.wait([task], timeout=10)
    assert task.cancelled()
    await link.close()
