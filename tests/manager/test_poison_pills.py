"""Handlers that kill their process: dead-lettered after three crashes, without affecting other jobs."""

from __future__ import annotations

import pytest

from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "input_"), [("exits", {"code": 1}), ("exits", {"code": 0}), ("kills_itself", {})])
async def test_a_job_that_kills_its_worker_is_dead_lettered_and_its_neighbours_are_not(start, run_log, queue, kind, input_):
    neighbours = queue.add("neighbour", 3)
    [pill] = queue.add(kind, **input_)
    neighbours += queue.add("neighbour", 3)
    worker = start()

    await until(lambda: queue.of(pill, "state") == ("dead_letter",))
    await queue.completed(*neighbours)

    state, crashes, error = queue.of(pill, "state", "crashes", "error")
    assert (state, crashes, error) == ("dead_letter", 3, "quarantined: its worker died 3 times while running it")
    assert run_log.runs(pill) == [3]
    await until(lambda: worker.said.count(f"to run it again: tenure jobs replay {pill}"), is_=1)
    assert {queue.of(job, "attempt") for job in neighbours} == {(1,)}
    assert max(run_log.runs(*neighbours)) >= 2, "no neighbour was ever caught in a crash: this test tests nothing"
    assert worker.process.poll() is None


async def test_a_handler_that_raises_system_exit_ends_its_job_and_not_the_worker(start, project, run_log, queue):
    (project / "jobs.py").write_text(
        "import sys\n"
        "from tenure import Tenure\n"
        "app = Tenure()\n"
        "@app.job(max_attempts=1)\n"
        "async def leaves(): sys.exit('enough')\n"
        "@app.job(max_attempts=1)\n"
        "def leaves_thread(): sys.exit('enough')\n"
        "@app.job\n"
        "async def stays(): return 1\n"
    )
    ids = [*queue.add("leaves"), *queue.add("leaves_thread")]
    worker = start()
    children = await serving(worker)

    await until(lambda: queue.states(*ids), is_={"dead_letter": 2})
    await queue.completed(*queue.add("stays"))

    assert all("enough" in queue.of(job, "error")[0] for job in ids)
    assert worker.children() == children
