"""Under `tenure worker`: handlers enqueue jobs, and subscribers in a child receive what the supervisor saw."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.manager.worker_helpers import Queue, serving
from tests.processes import worker_process
from tests.waiting import until

DUTIES = {"stager", "reaper", "cleaner"}


@pytest.fixture
def start(project, dsn):
    """`tenure worker` with the app of `supervised_app.py`, told its database by a flag only."""
    shutil.copy(Path(__file__).with_name("supervised_app.py"), project / "jobs.py")
    return lambda *options: worker_process(project, dsn, *options)


@pytest.fixture
def seen(project):
    def seen(event: str) -> list[dict]:
        file = project / "events"
        entries = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [entry for entry in entries if entry["event"] == event]

    return seen


@pytest.mark.slow
async def test_handlers_in_every_executor_can_enqueue_jobs(start, sql, dsn):
    queue = Queue(sql, dsn)
    with start() as worker:
        await serving(worker)
        parents = {kind: queue.add(kind)[0] for kind in ("on_loop", "in_thread", "in_process", "in_process_async")}
        await queue.completed(*parents.values(), within=20)
    for kind, parent in parents.items():
        [child] = queue.of(parent, "output")
        assert queue.of(child, "parent_id::text") == (parent,), kind


async def test_the_leaders_elected_by_the_supervisor_are_reported_in_a_child(start, seen):
    with start() as worker:
        [child] = await serving(worker)
        await until(lambda: {entry["duty"] for entry in seen("LeaderElected")} >= DUTIES)
        assert {entry["pid"] for entry in seen("LeaderElected")} == {child}
        [started] = seen("WorkerStarted")
        worker.terminate()
        worker.wait(20)
    assert [entry["worker_id"] for entry in seen("WorkerStopped")] == [started["worker_id"]]


@pytest.mark.parametrize("processes", [1, 2])
async def test_the_death_of_a_child_is_reported_in_another(start, seen, processes):
    with start("--processes", str(processes)) as worker:
        await serving(worker, processes)
        started = await until(lambda: seen("WorkerStarted")[processes - 1 :] and seen("WorkerStarted"))
        victim = started[0]
        os.kill(victim["pid"], signal.SIGKILL)
        [died] = await until(lambda: seen("WorkerDied"))
    assert (died["worker_id"], died["cause"]) == (victim["worker_id"], "signal SIGKILL")
    assert died["pid"] != victim["pid"]
