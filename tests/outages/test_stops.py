"""A worker that stops while PostgreSQL does not answer uses its grace period, and reports nothing as lost that was written."""

from __future__ import annotations

import asyncio

import pytest

from tenure import Tenure
from tenure.model.events import JobSettled, RunLost
from tests.manager.worker_helpers import serving
from tests.outages.test_lost_answers import Standby
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def standby(sql):
    return Standby(sql)


async def test_outcomes_are_written_when_the_server_returns_within_the_grace(start, run_log, queue, server_control):
    worker = start("--concurrency", "10")
    await serving(worker)
    ids = queue.add("until_released", 10)
    await until(lambda: run_log.runs(*ids), is_=[1] * 10)

    server_control.stop()
    run_log.release()
    await until(lambda: len(run_log.entries("end")), is_=10)
    worker.terminate()
    await until(lambda: "stopping" in worker.said)
    with pytest.raises(AssertionError):  # it is still there after many tries to write
        await until(lambda: worker.process.poll() is not None, within=3)
    server_control.start()

    await until(lambda: worker.process.poll() is not None, within=20)
    assert worker.process.returncode == 0
    assert queue.states(*ids) == {"completed": 10}
    assert run_log.runs(*ids) == [1] * 10
    assert "could not be written" not in worker.said


async def test_a_job_that_ends_while_the_worker_stops_is_reported_as_settled(dsn, queue, standby, caplog):
    app = Tenure(dsn)
    started, released = asyncio.Event(), asyncio.Event()
    events = []

    @app.job
    async def work() -> None:
        started.set()
        await released.wait()

    app.on(JobSettled, RunLost)(events.append)
    worker = app.worker()
    await worker.start()
    await work.enqueue()
    await started.wait()
    standby.is_missing()
    released.set()
    await standby.waiting("settle")

    stopping = asyncio.create_task(worker.stop())
    await asyncio.wait([stopping], timeout=0.5)
    standby.is_needed_no_more()
    await stopping
    await app.close()

    assert [(type(event), event.state) for event in events] == [(JobSettled, "completed")]
    assert not [record.getMessage() for record in caplog.records if "lost" in record.getMessage()]
