"""Processes that die repeatedly: restarted after growing pauses, up to a limit."""

from __future__ import annotations

import os
import signal

import pytest

from tenure.manager import restarts
from tenure.manager.restarts import Restarts
from tests.manager.worker_helpers import serving
from tests.waiting import until

EXIT_RESTART_LIMIT = 9


@pytest.mark.slow
async def test_when_all_die_at_once_the_supervisor_gives_up_with_a_code_of_its_own(start, project, run_log):
    (project / "jobs.py").write_text("import os\nos._exit(5)\n")
    worker = start(env={"TENURE_WORKERS_RESTART_LIMIT": "3"})
    await until(worker.process.poll, is_=EXIT_RESTART_LIMIT)
    assert worker.said.count("exit code 5") == 3
    assert "3 processes in a row died" in worker.said
    assert "workers.restart_limit" in worker.said


async def test_a_process_that_dies_is_replaced_and_the_limit_is_not_reached_by_one_that_lives(start, queue):
    worker = start(env={"TENURE_WORKERS_RESTART_LIMIT": "2"})
    [child] = await serving(worker)
    os.kill(child, signal.SIGKILL)
    await until(lambda: worker.said.count("ready: "), is_=2)
    await queue.completed(*queue.add("quick"))
    assert worker.process.poll() is None


class Ended:
    def __init__(self, *, young: bool) -> None:
        self.crashed_early = young


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(restarts, "jittered", lambda seconds: seconds)
    monkeypatch.setattr(restarts.time, "monotonic", lambda: 1000.0)


def test_the_first_is_replaced_at_once_and_then_the_pause_doubles_to_half_a_minute(clock):
    watch, pauses = Restarts(0), []
    for _ in range(12):
        watch.ended(Ended(young=True))
        pauses.append(round(watch.pause, 1))
    assert pauses == [0.0, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0, 30.0]
    assert not watch.limit_reached


def test_a_process_that_lived_longer_resets_the_count(clock):
    watch = Restarts(3)
    for young in (True, True, False, True, True):
        watch.ended(Ended(young=young))
    assert (watch.early_crashes, watch.limit_reached) == (2, False)
    watch.ended(Ended(young=True))
    assert watch.limit_reached
