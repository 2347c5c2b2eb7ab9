"""Processes that have run for long enough, or hold too much, are replaced in order."""

from __future__ import annotations

from collections import Counter

import pytest

from tenure.manager.process import ChildProcess
from tenure.manager.recycling import reason_to_recycle
from tenure.manager.spec import ChildHello, ChildSpec
from tests.manager.worker_helpers import serving
from tests.waiting import until


async def test_after_the_set_number_of_jobs_a_process_is_replaced_and_every_job_runs_once(start, run_log, queue):
    worker = start("--concurrency", "5", env={"TENURE_WORKERS_RECYCLE_AFTER_JOBS": "50"})
    await serving(worker)
    ids = queue.add("short", 200)
    await until(lambda: worker.said.count("ready: ") >= 2)  # the old process runs jobs until the new one can
    ids += queue.add("short", 200)

    await queue.completed(*ids)

    assert 'reason="it has run' in worker.said
    assert len({entry["pid"] for entry in run_log.entries()}) > 1
    assert Counter(entry["job"] for entry in run_log.entries()) == Counter(ids)
    # Not the fence: a job whose claim was under way when its process was asked to stop is requeued before it begins.
    assert set(queue.sql("select attempt, crashes from tenure.history")) == {(1, 0)}


@pytest.mark.slow
async def test_a_process_that_uses_too_much_memory_continues_until_the_next_is_ready(start, run_log, queue):
    worker = start(env={"TENURE_WORKERS_RECYCLE_ABOVE_MB": "300"})
    [old] = await serving(worker)
    [long] = queue.add("until_released")
    await queue.completed(*queue.add("hoards", megabytes=400))

    await until(lambda: 'reason="it uses' in worker.said)
    await until(lambda: worker.said.count("ready: "), is_=2)
    run_log.release()

    await queue.completed(long)
    await until(lambda: old not in worker.children() and len(worker.children()) == 1)
    assert run_log.runs(long) == [1]


@pytest.mark.slow
async def test_one_that_is_old_is_replaced(start):
    worker = start(env={"TENURE_WORKERS_RECYCLE_AFTER_SECONDS": "2"})
    [old] = await serving(worker)
    await until(lambda: "s old" in worker.said)
    await until(lambda: worker.children() and old not in worker.children())


HELLO = dict.fromkeys(ChildHello.__dataclass_fields__, 0) | {"queues": [], "kinds": [], "capabilities": []}


@pytest.mark.parametrize(
    ("limits", "seen", "worn"),
    [
        ({}, {"done": 10**6, "memory": 10**6}, False),
        ({"recycle_after_jobs": 10}, {"done": 9}, False),
        ({"recycle_after_jobs": 10}, {"done": 10}, True),
        ({"recycle_above_mb": 100}, {"memory": 100.0}, False),
        ({"recycle_above_mb": 100}, {"memory": 100.1}, True),
        ({"recycle_after": 5.0}, {"started": 0.0}, True),
        ({"recycle_after": 1e12}, {"started": 0.0}, False),
    ],
)
def test_what_wears_a_process_out(limits, seen, worn):
    child = ChildProcess(ChildSpec(app="", folder="", flags={}))
    assert reason_to_recycle(child) is None
    child.hello = ChildHello(**{**HELLO, **limits})
    for name, value in seen.items():
        setattr(child, name, value)
    assert (reason_to_recycle(child) is not None) == worn
