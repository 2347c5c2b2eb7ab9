"""The catalogue under `tenure worker`: jobs that crash their worker, and jobs that enqueue others."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from tenure.simulate.catalogue import app
from tenure.simulate.expectations import check
from tenure.simulate.mix import MIXES
from tests.processes import worker_process
from tests.simulate.inputs import ONLY_UNDER_A_SUPERVISOR, input_of
from tests.simulate.running import catalogue_on, found, unfinished
from tests.waiting import until

PATIENCE = 90.0


async def surprises(kinds, dsn, sql, folder):
    sql("select tenure.enqueue(%s)", json.dumps([{"kind": kind, "input": input_of(kind)} for kind in kinds]))
    with worker_process(folder, dsn, app="tenure.simulate.catalogue:app"):
        await until(lambda: unfinished(dsn), is_={}, within=PATIENCE)
    return [str(surprise) for surprise in check(found(dsn))]


@pytest.mark.slow
async def test_a_job_that_kills_its_worker_ends_as_expected_and_so_do_its_neighbours(dsn, sql, tmp_path):
    """Only under a supervisor: it would crash the process that runs the tests."""
    kinds = [ONLY_UNDER_A_SUPERVISOR, "quick", "slow", "thread_nap", "snoozes", "cpu", "flaky_until"]
    assert await surprises(kinds, dsn, sql, tmp_path) == []


@pytest.mark.slow
async def test_a_deadly_mix_ends_as_expected(dsn, tmp_path):
    """Workers crash again and again: no job is lost or completed twice, and no other job is affected."""
    with catalogue_on(dsn):
        await app.enqueue_many(islice(MIXES["deadly"].draw(5), 80))
        await app.close()
        with worker_process(tmp_path, dsn, "--processes", "2", "--concurrency", "10", app="tenure.simulate.catalogue:app"):
            await until(lambda: unfinished(dsn), is_={}, within=2 * PATIENCE)
    jobs = found(dsn)
    assert any(job.kind == ONLY_UNDER_A_SUPERVISOR for job in jobs)
    assert [str(surprise) for surprise in check(jobs)] == []


@pytest.mark.parametrize(
    "kinds",
    [
        ["fan_out_in_process"],
        pytest.param(["fan_out", "fan_out_in_thread", "chained", "atomic_child"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
async def test_what_a_handler_enqueues_goes_to_the_database_its_worker_was_given(kinds, dsn, sql, tmp_path, monkeypatch):
    """The worker gets its database from `--dsn` only; none is set for the app."""
    monkeypatch.delenv("TENURE_DSN", raising=False)
    assert await surprises(kinds, dsn, sql, tmp_path) == []
