"""The fault that kills PgBouncer: each time the one that serves, also if two of them overlap."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace

import pytest

from tenure.chaos.faults.base import FaultSkipped
from tenure.chaos.faults.networks import kill_pooler, start_pooler
from tenure.chaos.pooler import PGBOUNCER, Pooler
from tests.waiting import until

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")


@pytest.fixture
async def testbed(dsn, tmp_path):
    pooler = Pooler(dsn, tmp_path)
    pooler.start()
    await until(lambda: pooler.answers)
    yield SimpleNamespace(pooler=pooler)
    pooler.kill()


async def test_faults_that_overlap_leave_one_pooler_that_the_next_one_kills(testbed):
    tries = await asyncio.gather(*(kill_pooler(testbed, Random(n)) for n in range(4)), return_exceptions=True)

    assert [type(one).__name__ for one in tries if isinstance(one, Exception)] == ["FaultSkipped"] * 3
    await until(lambda: testbed.pooler.answers)
    testbed.pooler.kill()
    assert not testbed.pooler.answers


async def test_a_pooler_that_is_started_twice_can_be_killed(testbed):
    testbed.pooler.start()
    testbed.pooler.kill()
    assert not testbed.pooler.answers


async def test_a_fault_that_is_cut_short_is_healed(testbed):
    fault = asyncio.create_task(kill_pooler(testbed, Random(1)))
    await until(lambda: not testbed.pooler.runs)
    fault.cancel()
    await asyncio.gather(fault, return_exceptions=True)
    with pytest.raises(FaultSkipped, match="down already"):
        await kill_pooler(testbed, Random(2))

    await start_pooler(testbed)
    await until(lambda: testbed.pooler.answers)
