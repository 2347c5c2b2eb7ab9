"""Workers have names: in their rows, in events and in every line of their logs."""

from __future__ import annotations

import json
import os
import socket

import pytest

from tenure import ConfigError, Tenure, WorkerStarted, WorkerStopped, WorkerStopping
from tests.manager.worker_helpers import serving
from tests.waiting import until


def names(queue) -> list[str]:
    return sorted(name for (name,) in queue.sql("select name from tenure.workers where died_at is null"))


def logged(worker) -> list[dict[str, object]]:
    return [json.loads(row) for row in worker.said.splitlines() if row.startswith("{")]


@pytest.mark.slow
async def test_processes_of_a_named_worker_are_numbered_and_a_free_number_is_used_again(start, run_log, queue):
    worker = start("--name", "mail", "--processes", "2", env={"TENURE_LOG_FORMAT": "json"})
    await serving(worker, processes=2)
    assert names(queue) == ["mail", "mail-2"]
    [(pid,)] = queue.sql("select pid from tenure.workers where name = 'mail'")
    os.kill(pid, 9)
    await until(lambda: (names(queue), pid in queue.worker_pids()), is_=(["mail", "mail-2"], False))
    [death] = [line for line in logged(worker) if line["message"].startswith("worker process died")]
    assert (death["worker"], death["child_pid"], death["cause"]) == ("mail", pid, "signal SIGKILL")


async def test_the_lines_of_its_processes_carry_the_name(start, run_log, queue, project):
    with (project / "jobs.py").open("a") as code:
        code.write("\n@app.job(name='writes')\nasync def writes(ctx: Context) -> None:\n    ctx.log.info('a line')\n")
    worker = start("--name", "mail", env={"TENURE_LOG_FORMAT": "json"})
    [child] = await serving(worker)
    await queue.completed(*queue.add("writes"))
    [line] = [line for line in logged(worker) if line["message"] == "a line"]
    assert (line["worker"], line["pid"]) == ("mail", child)


async def test_without_a_name_it_is_host_and_pid(start, run_log, queue):
    [child] = await serving(start())
    assert names(queue) == [f"{socket.gethostname()}:{child}"]


async def test_the_name_may_be_a_setting(start, run_log, queue):
    await serving(start(env={"TENURE_WORKERS_NAME": "from-the-environment"}))
    assert names(queue) == ["from-the-environment"]


async def test_a_worker_in_your_own_process_has_one_too_and_its_events_carry_it(dsn, sql):
    app = Tenure(dsn)
    heard: list[str] = []
    app.on(WorkerStarted, WorkerStopping, WorkerStopped)(lambda event: heard.append(f"{type(event).__name__} {event.worker}"))
    worker = app.worker(name="inside")
    await worker.start()
    assert sql("select name from tenure.workers") == [("inside",)]
    assert [found.name for found in await app.client().workers()] == ["inside"]
    await worker.stop()
    assert heard == ["WorkerStarted inside", "WorkerStopping inside", "WorkerStopped inside"]
    await app.close()


@pytest.mark.parametrize("name", ["x" * 201, "two\nlines", "nul\0"])
def test_a_name_that_cannot_be_shown_is_refused(dsn, name):
    with pytest.raises(ConfigError, match="cannot be the name of a worker"):
        Tenure(dsn).worker(name=name)
    with pytest.raises(ConfigError, match=r"workers\.name"):
        _ = Tenure(dsn, workers_name=name).settings


async def test_its_processes_report_the_version_of_the_app(start, run_log, queue):
    await serving(start(env={"TENURE_APP_VERSION": "v12"}))
    assert queue.sql("select app_version from tenure.workers where died_at is null") == [("v12",)]
