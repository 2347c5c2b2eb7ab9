"""The health files and the systemd notifications of the supervisor, also when it is frozen or PostgreSQL is down."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tenure.manager.health import HealthChecks, liveness, readiness, ready_file
from tenure.manager.host import Systemd
from tenure.manager.supervisor import Supervisor
from tests.manager.worker_helpers import SHORT_LEASE
from tests.planted_secrets import assert_no_secret
from tests.processes import run_process
from tests.waiting import until


def health(*options: str, cwd=None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tenure", "health", *options]
    return run_process(command, timeout=30, cwd=cwd)


@contextmanager
def database_away(dsn: str, server_dsn: str):
    """New connections are rejected, and existing ones are closed."""
    name = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"alter database {name} allow_connections false")
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        yield
        admin.execute(f"alter database {name} allow_connections true")


async def test_both_files_are_there_while_it_works_and_gone_at_the_end(start, project, run_log):
    file = project / "health"
    worker = start("--health-file", str(file), env=SHORT_LEASE)
    await until(ready_file(file).exists)
    assert json.loads(file.read_text())["pid"] == worker.pid

    for what in ("--live", "--ready"):
        good = health("--file", str(file), what, "--json")
        told = json.loads(good.stdout)
        assert (good.returncode, told["live"], told["ready"]) == (0, True, True)
    before = file.stat().st_mtime, ready_file(file).stat().st_mtime
    await until(lambda: file.stat().st_mtime > before[0] and ready_file(file).stat().st_mtime > before[1])
    worker.terminate()
    await until(worker.process.poll, is_=0, within=20)  # less than the grace

    assert not file.exists()
    assert not ready_file(file).exists()
    gone = health("--file", str(file))
    assert gone.returncode == 1
    assert "no supervisor is up" in gone.stderr


@pytest.mark.slow
async def test_it_is_alive_from_the_start_and_through_any_outage_but_not_ready(start, dsn, server_dsn, project, run_log):
    file = project / "health"
    with database_away(dsn, server_dsn):
        start("--health-file", str(file), env=SHORT_LEASE)
        await until(file.exists)
        assert not ready_file(file).exists()
    await until(lambda: readiness(file).good)

    with database_away(dsn, server_dsn):
        await until(lambda: not readiness(file, 5.0).good)
        assert liveness(file, 4.0).good
        assert health("--file", str(file)).returncode == 0
        aged = health("--file", str(file), "--ready", "--max-age", "5s")
        assert (aged.returncode, "leases are not renewed" in aged.stderr) == (1, True)

    await until(lambda: readiness(file, 5.0).good)


async def test_it_is_not_alive_when_the_supervisor_is_frozen(start, project, run_log):
    file = project / "health"
    worker = start("--health-file", str(file), env=SHORT_LEASE)
    await until(file.exists)
    os.kill(worker.pid, signal.SIGSTOP)
    await until(lambda: not liveness(file, 4.0).good)
    assert health("--file", str(file), "--max-age", "4s").returncode == 1


def test_what_a_killed_supervisor_left_makes_the_next_one_not_ready(tmp_path):
    file = tmp_path / "health"
    first = HealthChecks(str(file))
    first.alive()
    first.renewed()
    assert readiness(file).good
    HealthChecks(str(file)).alive()
    assert not readiness(file).good
    assert liveness(file).good


def test_a_long_lease_that_is_renewed_less_often_is_not_unhealthy(tmp_path):
    file = tmp_path / "health"
    vitals = HealthChecks(str(file))
    vitals.renewed(lease=300.0)
    minute_ago = ready_file(file).stat().st_mtime - 60
    os.utime(ready_file(file), (minute_ago, minute_ago))
    assert readiness(file).good
    assert not readiness(file, 30.0).good


def test_without_a_file_the_error_shows_how_to_set_one(tmp_path):
    refused = health(cwd=tmp_path)
    assert refused.returncode == 2
    assert "health_file in [workers]" in refused.stderr
    (tmp_path / "tenure.toml").write_text("[workers]\nhealth_file = 'beat'\n")
    assert health(cwd=tmp_path).returncode == 1
    (tmp_path / "beat").touch()
    assert health(cwd=tmp_path).returncode == 0


def test_a_file_that_cannot_be_written_is_reported_and_stops_nothing(tmp_path, caplog):
    HealthChecks(str(tmp_path / "nowhere" / "file")).alive()
    assert "health file cannot be written" in caplog.text


class NotifySocket:
    """The socket that systemd would listen on."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        self._socket.setblocking(False)
        self.heard: list[str] = []

    def hear(self, word: str) -> bool:
        while True:
            try:
                self.heard += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return any(heard.startswith(word) for heard in self.heard)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def notify_socket(tmp_path):
    notify_socket = NotifySocket(str(tmp_path / "notify"))
    yield notify_socket
    notify_socket.close()


async def test_systemd_is_notified_of_every_state(start, run_log, tmp_path, notify_socket):
    worker = start(env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "600000"})
    await until(lambda: notify_socket.hear("READY=1"))
    assert "ready: " in worker.said
    await until(lambda: notify_socket.hear("WATCHDOG=1"))
    await until(lambda: notify_socket.hear("STATUS=1 worker processes, 0 jobs running"))

    notify_socket.heard.clear()
    os.kill(worker.pid, signal.SIGHUP)
    await until(lambda: notify_socket.hear("RELOADING=1"))
    assert notify_socket.hear("MONOTONIC_USEC=")
    await until(lambda: notify_socket.hear("READY=1"))

    worker.terminate()
    await until(lambda: notify_socket.hear("STOPPING=1"))
    await until(worker.process.poll, is_=0, within=20)  # less than the grace


async def test_the_watchdog_is_fed_while_the_loop_turns_although_nothing_was_ever_renewed(monkeypatch, tmp_path, notify_socket):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    supervisor = Supervisor([])
    assert "NOTIFY_SOCKET" not in os.environ, "the children would think it is for them"
    for _ in range(2):
        notify_socket.heard.clear()
        assert await supervisor._feed_watchdog() == 0.01
        assert notify_socket.hear("WATCHDOG=1")


def test_without_systemd_nothing_is_sent_and_nothing_fails():
    systemd = Systemd({})
    systemd.ready()
    assert systemd.watchdog_every is None
    Systemd({"NOTIFY_SOCKET": "/nowhere/at/all"}).ready()
    assert Systemd({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).watchdog_every is None
    assert Systemd({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000"}).watchdog_every == 1.0


def test_the_abstract_socket_of_linux_is_reached():
    name = f"tenure-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"\0{name}")
        other.settimeout(5)
        Systemd({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert other.recv(100) == b"STOPPING=1"


AT_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "tenure", "worker", "--app", "jobs:app", "--dsn", sys.argv[1], "-p", "1"])
"""


@pytest.fixture
def at_a_terminal(dsn, project, run_log):
    """A worker with a terminal of its own: gives its log and its process, and takes a function that closes the terminal."""
    ours, theirs = os.openpty()
    with (project / "at-a-terminal.log").open("wb") as said:
        command = [sys.executable, "-c", AT_A_TERMINAL, dsn]
        worker = subprocess.Popen(command, cwd=project, stdin=theirs, stdout=said, stderr=said, start_new_session=True)
    os.close(theirs)
    yield worker, lambda: os.close(ours)
    worker.kill()
    worker.wait()
    assert_no_secret((project / "at-a-terminal.log").read_text())


async def test_when_its_terminal_is_closed_it_ends_and_does_not_reload(at_a_terminal, project, queue):
    worker, close = at_a_terminal
    log = project / "at-a-terminal.log"
    await until(lambda: "ready: " in log.read_text())
    close()
    await until(worker.poll, is_=0, within=20)
    assert "rolling restart" not in log.read_text()
    assert queue.sql("select id from tenure.workers") == []
