"""What a worker says about an outage: that it began and that it is over, each once in each process, and nothing untrue."""

from __future__ import annotations

import re
import time

import pytest

from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow

PROCESSES = 2  # the supervisor and its child
AWAY = re.compile(r"PostgreSQL (cannot be reached|is shutting down|is starting up)")
"""How it begins depends on what the process met first; it is one outage all the same."""
BACK = "PostgreSQL is back after"
DEAF, HEARS = "LISTEN delivers nothing", "the test notification has arrived"


def facts(worker):
    return len(AWAY.findall(worker.said)), worker.said.count(BACK)


async def test_an_outage_is_one_warning_and_one_info_in_each_process(start, run_log, queue, server_control):
    worker = start("--concurrency", "5")
    await serving(worker)
    ids = queue.add("until_released", 5)
    await until(lambda: run_log.runs(*ids), is_=[1] * 5)
    assert facts(worker) == (0, 0)

    server_control.stop()
    run_log.release()
    await until(lambda: facts(worker), is_=(PROCESSES, 0))
    over = time.monotonic() + 6  # every loop has had its turns, those too that have nothing to do
    await until(lambda: time.monotonic() > over)
    assert facts(worker) == (PROCESSES, 0)
    server_control.start()

    await until(lambda: facts(worker), is_=(PROCESSES, PROCESSES))
    await queue.completed(*ids)
    assert facts(worker) == (PROCESSES, PROCESSES)
    assert "works again" not in worker.said
    assert "Traceback" not in worker.said


async def test_restarts_of_the_server_are_not_taken_for_a_pooler(start, queue, server_control, run_log):
    """The connections that send and that listen do not reconnect in the same moment."""
    worker = start(env={"TENURE_LOG": "DEBUG"})
    await serving(worker)
    await until(lambda: worker.said.count(HEARS) >= PROCESSES)
    for _ in range(3):
        before = worker.said.count(HEARS)
        server_control.stop()
        server_control.start()
        await until(lambda: worker.said.count(HEARS) >= before + PROCESSES)  # noqa: B023
    assert DEAF not in worker.said
    await queue.completed(*queue.add("quick", 3))
