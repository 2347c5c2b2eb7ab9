"""Whole mixes on a real worker: 200 jobs on 20 slots, each ends as expected."""

from __future__ import annotations

from itertools import islice

import pytest

from tenure.simulate.expectations import check
from tenure.simulate.mix import MIXES
from tests.simulate.running import catalogue_on, run_all

PATIENCE = 150.0  # seconds; a fifth of it on a machine that has nothing else to do


@pytest.mark.parametrize("name", ["calm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mixed", "hostile"))])
async def test_a_mix_ends_as_expected(name, dsn):
    with catalogue_on(dsn):
        jobs = await run_all(dsn, islice(MIXES[name].draw(1), 200), within=PATIENCE)
    assert len(jobs) >= 190
    assert [str(surprise) for surprise in check(jobs)] == []
