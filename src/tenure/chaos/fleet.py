"""Real workers: `tenure worker` as anyone would start it, started anew whenever one is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

APP = "tenure.chaos.work:app"
FOLDER = "TENURE_CHAOS_LEDGER"
"""The variable that names the folder of a campaign in the environment of its workers."""
CLOCK = "TENURE_CHAOS_CLOCK"
"""Seconds to add to the monotonic clock to get the time of the campaign."""
LOOK_EVERY = 0.1  # seconds
PATIENCE = 10.0  # seconds after each signal, at the end


def settings_of(folder: Path, lease: float) -> dict[str, str]:
    """The environment of a campaign's workers: leases are short, and duties change hands and clean up often."""
    return {
        "TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": str(lease),
        "TENURE_LEADER_ROTATE_SECONDS": "20",
        "TENURE_LEADER_CLEANUP_INTERVAL_SECONDS": "10",
        "TENURE_LOG": "warning",
        FOLDER: str(folder),
        CLOCK: str(time.time() - time.monotonic()),
    }


def children_of(supervisor: int) -> list[int]:
    """The processes that run handlers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == supervisor and b"tenure.manager.child" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return sorted(found)


def strays(folder: Path, within: float) -> list[int]:
    """Processes of a campaign that have not ended after so many seconds."""
    deadline = time.monotonic() + within
    while (left := _processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY)
    return left


def _processes_of(folder: Path) -> list[int]:
    """By the folder that is named in their environment."""
    mark = f"{FOLDER}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return sorted(found)


@dataclass
class Worker:
    name: str
    route: str
    """How it reaches PostgreSQL, for the record."""
    dsn: str
    folder: Path
    options: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    app: str = APP
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "tenure.cli.attended", str(os.getpid()), "worker", "--app", self.app, *self.options]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment, "TENURE_DSN": self.dsn},
                process_group=0,
            )
        self.starts += 1

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def children(self) -> list[int]:
        return children_of(self.pid) if self.alive else []

    def kill_all(self) -> None:
        """Supervisor and children in one go, as a machine that loses power."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if not self.alive:
                return
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGCONT)
            assert self.process is not None
            self.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)


@dataclass
class Fleet:
    workers: list[Worker]
    gave_up: list[tuple[float, str]] = field(default_factory=list)
    """Workers that ended though nobody had asked them to: when, and how."""
    _doomed: set[int] = field(default_factory=set)
    _dismissed: set[int] = field(default_factory=set)

    def start(self) -> None:
        for worker in self.workers:
            worker.start()

    def doom(self, worker: Worker) -> None:
        """It is about to be killed: its end is no surprise."""
        self._doomed.add(worker.pid)

    def dismiss(self, worker: Worker) -> None:
        """It is about to be told to stop: it is to end, with exit code 0."""
        self._dismissed.add(worker.pid)

    async def keep(self) -> None:
        """Until cancelled: whoever is gone comes back."""
        while True:
            for worker in self.workers:
                if not worker.alive:
                    assert worker.process is not None
                    self._judge(worker, worker.process.returncode)
                    worker.start()
            await asyncio.sleep(LOOK_EVERY)

    def _judge(self, worker: Worker, code: int) -> None:
        if worker.pid in self._doomed or (worker.pid in self._dismissed and code == 0):
            return
        how = "after SIGTERM" if worker.pid in self._dismissed else "by itself"
        self.gave_up.append((time.time(), f"{worker.name} ended {how}, exit code {code}"))

    def wake_all(self) -> None:
        """Ends every SIGSTOP."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGCONT)

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
