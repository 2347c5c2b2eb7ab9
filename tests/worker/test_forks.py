"""Handlers that fork: a copy never works for the worker, and what was forked ends with the process that forked it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress

import pytest

from tests.manager.worker_helpers import alive, ended
from tests.processes import worker_process
from tests.waiting import until
from tests.worker import fork_jobs


@pytest.fixture
def dsn(fresh_dsn):
    return fresh_dsn


@pytest.fixture
def worker(project, dsn):
    shutil.copy(fork_jobs.__file__, project / "jobs.py")
    with worker_process(project, dsn) as worker:
        yield worker


@pytest.fixture
def result(worker, sql):
    """Runs a job to its end and gives its output."""

    async def result(kind, **input_):
        [(job,)] = sql("select id from tenure.enqueue(%s)", json.dumps([{"kind": kind, "input": input_, "max_attempts": 1}]))
        sql("select pg_notify('tenure', 'jobs default')")
        over = "select state, crashes, output, error from tenure.all_jobs where id = %s and state in ('completed', 'dead_letter')"
        [(state, crashes, output, error)] = await until(lambda: sql(over, job), within=30)
        assert (state, crashes) == ("completed", 0), error
        return output

    return result


async def fleet_is_well(worker, sql, result):
    for n in range(10):
        assert await result("fine", n=n) == n
    assert sql("select count(*) from tenure.incidents") == [(0,)]
    assert "Traceback" not in worker.said
    assert sql("select id from tenure.history group by id having count(*) > 1") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["fork_in_thread", "fork_on_loop", "fork_on_loop_and_wait", "fork_in_process", "fork_in_process_on_loop"]
)
async def test_a_copy_that_returns_from_the_handler_ends_and_records_nothing(worker, sql, result, kind):
    forked = await result(kind)
    assert forked > 0  # what the original returned
    await ended(forked, within=30)
    await fleet_is_well(worker, sql, result)


async def test_a_copy_cannot_report_for_the_job(worker, sql, result):
    assert (await result("fork_that_speaks")).count("this process was forked by the handler") == 2
    assert sql("select count(*) from tenure.progress") == [(0,)]
    await fleet_is_well(worker, sql, result)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize("kind", ["start_in_thread", "start_on_loop", "start_in_process"])
async def test_what_a_handler_has_forked_ends_with_its_worker(worker, result, kind, how):
    forked = await result(kind)
    assert alive(forked)
    if how == "stopped":
        worker.terminate()
        worker.wait(30)
    else:
        os.kill(worker.pid, signal.SIGKILL)
    await ended(forked, within=30)


async def test_programs_that_a_handler_has_started_end_with_its_process(worker, result):
    started = await result("start_program_in_process")
    worker.terminate()
    worker.wait(30)
    await ended(started, within=30)


@pytest.mark.slow
async def test_a_program_in_a_session_of_its_own_continues(worker, result):
    daemon = await result("start_daemon_in_process")
    try:
        worker.terminate()
        worker.wait(30)
        assert alive(daemon)
    finally:
        with suppress(ProcessLookupError):
            os.kill(daemon, signal.SIGKILL)


@pytest.mark.slow
async def test_a_signal_to_what_a_handler_has_forked_ends_that_and_not_the_worker(worker, sql, result):
    [child] = await until(worker.children)
    assert await result("terminate_a_child") == -signal.SIGTERM
    forked = await result("start_on_loop")
    os.kill(forked, signal.SIGTERM)
    await ended(forked, within=30)
    await fleet_is_well(worker, sql, result)
    assert worker.children() == [child]


@pytest.mark.slow
async def test_what_was_forked_in_a_thread_does_not_end_with_that_thread(worker, result, project):
    forked = await result("fork_in_a_thread_that_ends")
    await until(lambda: (project / "notes").exists() and str(forked) in (project / "notes").read_text())
    assert alive(forked)
    os.kill(forked, signal.SIGTERM)
    await ended(forked, within=30)
