"""Processes are replaced after a number of jobs, if they use too much memory, and if too many handlers ignored an abort."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenure import JobFailed, Tenure
from tests.processes import worker_process
from tests.waiting import until
from tests.worker.worn import app as worn
from tests.worker.worn import hoard, ignores_abort, where, who


@pytest.fixture
async def app(dsn):
    before = dict(worn.given)

    def configured(**settings: object) -> Tenure:
        worn.configure(dsn=dsn, **settings)
        return worn

    yield configured
    await worn.close()
    worn.given = before
    worn.configure()


async def test_a_process_is_replaced_after_the_set_number_of_jobs(app):
    async with app(workers_process_max_tasks=2).running():
        pids = [await (await where.enqueue()).result(20) for _ in range(5)]
    assert os.getpid() not in pids
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


@pytest.mark.slow
async def test_a_process_that_holds_too_much_is_killed_and_its_job_has_crashed(app):
    async with app(workers_process_memory_mb=200).running():
        handle = await hoard.enqueue(400)
        with pytest.raises(JobFailed, match=r"quarantined: its process died 3 times.*it used more than 200 MB"):
            await handle.result(40)
        assert (await handle.status()).crashes == 3
        assert await (await where.enqueue()).result(20) != os.getpid()


@pytest.mark.slow
async def test_a_worker_process_worn_out_by_deaf_handlers_is_replaced_in_order(app, dsn, tmp_path):
    app()
    env = {"WEARS_SOON": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    with worker_process(tmp_path, dsn, app="tests.worker.worn:app", env=env) as worker:
        first = await (await who.enqueue()).result(20)
        with pytest.raises(JobFailed, match="timed out"):
            await (await ignores_abort.enqueue()).result(20)
        await until(lambda: "this process will be replaced" in worker.said)
        handle = await who.enqueue()
        while await handle.result(40) == first:  # until it has left
            handle = await who.enqueue()
        assert len(worker.children()) == 1
    assert (await handle.status()).crashes == 0
