"""The unit, started by a real systemd: a manager of its own for this test, as `systemd --user` runs for a user."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.test_deploy import DEPLOY
from tests.manager.worker_helpers import alive
from tests.waiting import until

SYSTEMD = next((path for path in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(path).exists()), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SYSTEMD is None or os.geteuid() != 0, reason="needs systemd, and root"),
]


WORKERS = 3
"""The default count of both pools in deploy/app/tenure.toml."""

CGROUPS = [Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]
"""Where systemd keeps track of processes: with the first version of control groups, with both, with the second."""


def control_groups(name: str) -> list[Path]:
    """Control groups of their own. A manager moves all processes of the group in which it is started, which must be no others."""
    made = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or controllers == "name=systemd":
            roots = CGROUPS[:1] if number != "0" else CGROUPS[1:]
            parent = next((root / path.strip("/") for root in roots if (root / "cgroup.procs").exists()), None)
            if parent is not None:
                (parent / name).mkdir()
                made.append(parent / name)
    return made


class Manager:
    """`systemd --user` in a folder and in control groups of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._groups = control_groups(f"tenure-test-{os.getpid()}")
        except OSError as error:
            pytest.skip(f"no control groups can be made here: {error}")
        if not self._groups:
            pytest.skip("needs control groups")
        self.units = folder / "config" / "systemd" / "user"
        self.units.mkdir(parents=True)
        (folder / "run").mkdir(mode=0o700)
        self._env = {
            **os.environ,
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/run/bus",
        }
        self._log = (folder / "systemd.log").open("w")
        # It wants to see that systemd has started the system. In a mount namespace of its own that changes nothing for others.
        joined = "; ".join(f"echo 0 > {group}/cgroup.procs" for group in self._groups)
        booted = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system"
        start = f"{joined}; {booted}; exec {SYSTEMD} --user --log-target=console"
        self._process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", start], env=self._env, stdout=self._log, stderr=self._log
        )

    def ctl(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self._inside(), "systemctl", "--user", *words],
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if check:
            assert done.returncode == 0, done.stderr + self.said
        return done.stdout.strip()

    def _inside(self) -> list[str]:
        return ["nsenter", f"--mount=/proc/{self._process.pid}/ns/mnt"]

    def show(self, unit: str, name: str) -> str:
        return self.ctl("show", "--property", name, "--value", unit)

    @property
    def said(self) -> str:
        return (self._folder / "systemd.log").read_text("utf-8", "replace")

    def runs(self, within: float = 20) -> bool:
        """Whether it answers. Not where this account may not make control groups."""
        deadline = time.monotonic() + within
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.ctl("is-system-running", check=False) in ("running", "degraded"):
                return True
            time.sleep(0.1)
        return False

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._log.close()
        for group in self._groups:
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(tmp_path)
    try:
        if not manager.runs():
            pytest.skip(f"no `systemd --user` can run here: {manager.said.strip().splitlines()[-1:]}")
        yield manager
    finally:
        manager.end()


@pytest.fixture
def unit(manager: Manager, dsn: str, tmp_path: Path) -> str:
    """That of deploy/, with paths of this test. A manager of a user cannot change the account, or the view of the file system."""
    shop = tmp_path / "shop"
    shutil.copytree(DEPLOY / "app", shop)
    (tmp_path / "tenure.env").write_text(f'TENURE_DSN="{dsn}"\nTENURE_WEB_LISTEN=0\n')
    text = (DEPLOY / "systemd" / "tenure.service").read_text()
    for pattern, given in {
        r"^User=.*\n": "",
        r"^WorkingDirectory=.*": f"WorkingDirectory={shop}",
        r"^EnvironmentFile=.*": f"EnvironmentFile={tmp_path}/tenure.env",
        r"^ExecStart=\S+": f"ExecStart={Path(sys.executable).parent}/tenure",
        r"^WatchdogSec=.*": "WatchdogSec=5",
        r"^RestartSec=.*": "RestartSec=1",
        r"^PrivateTmp=.*\n": "",  # the folder of the test is there
        r"^ProtectSystem=.*\n": "",
    }.items():
        text, changed = re.subn(pattern, given, text, flags=re.MULTILINE)
        assert changed == 1, pattern
    (manager.units / "tenure.service").write_text(text)
    manager.ctl("daemon-reload")
    return "tenure.service"


async def test_it_starts_reloads_restarts_and_stops(manager, unit, sql):
    manager.ctl("start", unit)  # returns when READY=1 was sent
    supervisor = int(manager.show(unit, "MainPID"))
    assert workers(sql) != []
    sql("""select tenure.enqueue('[{"kind": "hello"}]')""")
    await until(lambda: sql("select state from tenure.history"), is_=[("completed",)])

    await until(lambda: len(workers(sql)), is_=WORKERS)  # READY=1 came with the first one of each pool
    old = workers(sql)
    manager.ctl("reload", unit)
    await until(lambda: set(workers(sql)).isdisjoint(old) and len(workers(sql)) == WORKERS)
    assert int(manager.show(unit, "MainPID")) == supervisor

    os.kill(supervisor, signal.SIGSTOP)  # it feeds the watchdog no more
    await until(lambda: int(manager.show(unit, "MainPID")) not in (0, supervisor))
    assert not alive(supervisor)
    await until(lambda: manager.show(unit, "ActiveState"), is_="active")
    sql("""select tenure.enqueue('[{"kind": "hello"}]')""")
    await until(lambda: sql("select state from tenure.history"), is_=[("completed",)] * 2)

    last = int(manager.show(unit, "MainPID"))
    manager.ctl("stop", unit)
    assert (manager.show(unit, "Result"), manager.show(unit, "ExecMainStatus")) == ("success", "0")
    assert not alive(last)


def test_wrong_settings_are_not_tried_again(manager, unit, tmp_path):
    (tmp_path / "tenure.env").write_text("TENURE_WORKERS_CONCURRENCY=none\n")
    manager.ctl("start", unit, check=False)
    assert manager.show(unit, "ActiveState") == "failed"
    assert manager.show(unit, "ExecMainStatus") == "3"
    assert manager.show(unit, "NRestarts") == "0"


def test_without_its_environment_it_does_not_start(manager, unit, tmp_path):
    (tmp_path / "tenure.env").unlink()
    manager.ctl("start", unit, check=False)
    assert manager.show(unit, "Result") == "resources"


def workers(sql) -> list[int]:
    return [pid for (pid,) in sql("select pid from tenure.workers where died_at is null order by pid")]
