"""`tenure up` and `tenure dev` as a whole: a database of their own, and new code as it is saved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.manager.worker_helpers import serving
from tests.planted_secrets import assert_no_secret
from tests.waiting import until

NEW_JOB = "\n@app.job(name='brand_new')\nasync def later(ctx: Context) -> int:\n    return 42\n"


async def test_dev_takes_up_new_code_as_it_is_saved_and_survives_a_typo(start, run_log, queue, project):
    dev = start("--processes", "1", command="dev")
    old = await serving(dev)
    [long] = queue.add("until_released")
    await until(lambda: run_log.runs(long), is_=[1])
    code = (project / "jobs.py").read_text()

    (project / "jobs.py").write_text("def broken(:\n")
    await until(lambda: "rolling restart failed" in dev.said)
    await until(dev.children, is_=old)  # the process that failed may not have been reaped yet
    (project / "jobs.py").write_text(code + NEW_JOB)

    await queue.completed(*queue.add("brand_new"), within=20)
    run_log.release()
    await queue.completed(long)
    assert run_log.runs(long) == [1]


async def test_up_brings_the_schema_up_to_date_first(start, queue, sql):
    sql("drop schema tenure cascade")
    await serving(start("--processes", "1", command="up"))
    await queue.completed(*queue.add("quick"))


async def test_a_pool_as_it_is_written_and_flags_that_describe_one_exclude_each_other(start, run_log):
    up = start("--pool", "media", "--queues", "a", command="up")
    await until(up.process.poll, is_=2)
    assert "omit the options" in up.said


async def test_a_pool_that_is_not_written_down_is_refused_by_name(start, run_log):
    up = start("--pool", "media", command="up")
    await until(up.process.poll, is_=3)
    assert "there is no pool 'media': use one of default" in up.said


@pytest.fixture
def folder():
    """Not pytest's own: as root the server's account cannot reach that."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-up-"))
    folder.chmod(0o711)
    shutil.copy(Path(__file__).with_name("jobs_for_tests.py"), folder / "jobs.py")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def dev_without_a_database(folder):
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("TENURE_", "PG", "DATABASE_"))}
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "tenure", "dev", "--app", "jobs:app", "--processes", "1", "--no-web"]
        dev = subprocess.Popen(command, cwd=folder, env=bare, stdout=log, stderr=log, start_new_session=True)
    yield dev
    if dev.poll() is None:
        os.killpg(dev.pid, signal.SIGKILL)
        dev.wait()
    assert_no_secret((folder / "log").read_text())


@pytest.mark.slow
async def test_dev_without_a_database_starts_one_and_ends_it_with_itself(dev_without_a_database, folder):
    log = folder / "log"
    await until(lambda: "ready: " in log.read_text(), within=60)
    assert "starting an embedded PostgreSQL" in log.read_text()
    dev_without_a_database.send_signal(signal.SIGINT)
    await until(dev_without_a_database.poll, is_=0, within=30)
    assert not list(folder.glob(".tenure/**/postmaster.pid"))


async def test_dev_shares_the_duties_that_many_can_do(start, sql, project):
    dev = start("--processes", "1", command="dev")
    await serving(dev)
    shared = "select name from tenure.leases where holder = '00000000-0000-0000-0000-000000000000' order by name"
    await until(lambda: sql(shared), is_=[("reaper",), ("stager",)])
    assert sql("select distinct metadata ->> 'strategy' from tenure.leases") == [("shared",)]
