"""The worker as PID 1 of a container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manager.worker_helpers import alive, handles_sigterm
from tests.planted_secrets import assert_no_secret
from tests.waiting import until

UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def may_unshare() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not may_unshare(), reason="unshare --pid is not permitted here: no PID namespace to test in")


@pytest.fixture
def container(project, dsn, run_log):
    """The worker in a PID namespace of its own; gives the `unshare` that waits for it."""
    command = [*UNSHARE, sys.executable, "-m", "tenure", "worker", "--app", "jobs:app", "--dsn", dsn, "-p", "1"]
    with (project / "container.log").open("wb") as log:
        outer = subprocess.Popen(command, cwd=project, stdout=log, stderr=log, start_new_session=True)
    try:
        yield outer
    finally:
        outer.kill()
        outer.wait()
    assert_no_secret((project / "container.log").read_text())


def children_of(pid: int) -> dict[int, str]:
    """Pid (as seen from outside) and state of each."""
    listed = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return {int(row.split()[0]): row.split()[1] for row in listed.stdout.splitlines()}


def pid_inside(pid: int) -> int:
    """In the innermost PID namespace."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("NSpid:")]
    return int(line.split()[-1])


async def test_as_pid_one_it_obeys_sigterm_and_buries_orphans(container, project, run_log, queue):
    said = project / "container.log"
    await until(lambda: "ready: " in said.read_text())
    [supervisor] = children_of(container.pid)
    assert pid_inside(supervisor) == 1

    [job] = queue.add("orphans")
    await queue.completed(job)
    # One child left, which is not a zombie: the orphan ended, was given to PID 1, and was waited for.
    await until(lambda: [state[0] for state in children_of(supervisor).values()] == ["S"])
    [child] = children_of(supervisor)
    os.kill(supervisor, signal.SIGTERM)

    await until(lambda: container.poll() is not None, within=20)  # less than the grace
    assert container.returncode == 0
    assert not alive(child)
    assert queue.sql("select id from tenure.workers") == []


async def test_as_pid_one_it_replaces_a_killed_child(container, project, run_log, queue):
    await until(lambda: "ready: " in (project / "container.log").read_text())
    [supervisor] = children_of(container.pid)
    [job] = queue.add("until_released")
    await until(run_log.entries)

    [child] = children_of(supervisor)
    os.kill(child, signal.SIGKILL)

    await until(lambda: run_log.runs(job), is_=[2])
    assert "signal SIGKILL" in (project / "container.log").read_text()


async def test_as_pid_one_it_obeys_a_sigterm_that_comes_before_it_is_ready(container, project):
    [supervisor] = await until(lambda: list(children_of(container.pid)))
    await until(lambda: handles_sigterm(supervisor))

    os.kill(supervisor, signal.SIGTERM)

    await until(lambda: container.poll() is not None, within=20)  # less than the grace
    assert (container.returncode, (project / "container.log").read_text()) == (0, "")
