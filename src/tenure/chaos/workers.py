"""The workers and the web server of a campaign, restarted whenever one has exited."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tenure.chaos.tenure_process import TenureProcess

APP = "tenure.chaos.jobs:app"
FOLDER = "TENURE_CHAOS_LEDGER"
"""The environment variable that names the campaign's folder to its workers."""
CLOCK = "TENURE_CHAOS_CLOCK"
"""Seconds to add to the monotonic clock to get the time of the campaign."""
CHECK_EVERY = 0.1  # seconds

REFUSAL = re.compile(rb"PostgreSQL refuses .*(sqlstate=(?:2[123]|42).*)")
"""A line of a worker's log about a wrong statement, value or constraint. A full disk or a lock has other codes."""
BY_THE_CAMPAIGN = b"the campaign refuses "


def worker_environment(folder: Path, lease: float) -> dict[str, str]:
    """The environment of a campaign's workers: leases are short, and leaders rotate and clean up often."""
    return {
        "TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": str(lease),
        "TENURE_LEADER_ROTATE_SECONDS": "20",
        "TENURE_LEADER_CLEANUP_INTERVAL_SECONDS": "10",
        "TENURE_LOG": "warning",
        FOLDER: str(folder),
        CLOCK: str(time.time() - time.monotonic()),
    }


def worker_command(app: str, *options: str) -> list[str]:
    return ["worker", "--app", app, *options]


def unexpected_refusals(folder: Path) -> Counter[str]:
    """What the logs of the workers report as refused by PostgreSQL, and no fault has caused: by error."""
    found: Counter[str] = Counter()
    for log in sorted(folder.glob("worker-*.log")):
        with log.open("rb") as lines:
            for line in lines:
                if BY_THE_CAMPAIGN not in line and (refusal := REFUSAL.search(line)):
                    found[refusal[1].decode("utf-8", "replace").strip()] += 1
    return found


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


def leftover_processes(folder: Path, within: float) -> list[int]:
    """Processes of a campaign that have not exited after `within` seconds."""
    deadline = time.monotonic() + within
    while (left := _processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(CHECK_EVERY)
    return left


def describe_process(pid: int) -> str:
    """For the report about one that should have exited: what it runs, its state and parent, and what it waits for."""
    entry = Path("/proc", str(pid))
    try:
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        return f"{command!r}, state {state}, parent {parent}, waits in {(entry / 'wchan').read_text() or '-'}"
    except OSError:
        return "it has exited meanwhile"


def _processes_of(folder: Path) -> list[int]:
    """Found by the folder in their environment."""
    mark = f"{FOLDER}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return sorted(found)


class CampaignWorker(TenureProcess):
    """A supervisor and its worker processes."""

    def children(self) -> list[int]:
        return children_of(self.pid) if self.alive else []


@dataclass
class WorkerGroup:
    workers: list[CampaignWorker]
    web: TenureProcess | None = None
    unexpected_exits: list[str] = field(default_factory=list)
    """Processes that exited without being stopped: which, and how."""
    _to_be_killed: set[int] = field(default_factory=set)
    _to_be_stopped: set[int] = field(default_factory=set)

    @property
    def processes(self) -> list[TenureProcess]:
        return [*self.workers, *([self.web] if self.web is not None else [])]

    def start(self) -> None:
        for process in self.processes:
            process.start()

    def expect_kill(self, worker: TenureProcess) -> None:
        """It is about to be killed: any exit is expected."""
        self._to_be_killed.add(worker.pid)

    def expect_stop(self, worker: CampaignWorker) -> None:
        """It is about to receive SIGTERM: an exit with code 0 is expected."""
        self._to_be_stopped.add(worker.pid)

    async def restart_exited(self) -> None:
        """Runs until cancelled."""
        while True:
            for worker in self.processes:
                if not worker.alive:
                    assert worker.process is not None
                    self._check_exit(worker, worker.process.returncode)
                    worker.start()
            await asyncio.sleep(CHECK_EVERY)

    def _check_exit(self, worker: TenureProcess, code: int) -> None:
        if worker.pid in self._to_be_killed or (worker.pid in self._to_be_stopped and code == 0):
            return
        how = "after SIGTERM" if worker.pid in self._to_be_stopped else "by itself"
        self.unexpected_exits.append(f"{worker.name} exited {how}, exit code {code}")

    def continue_all(self) -> None:
        """Ends every SIGSTOP."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGCONT)

    def stop(self) -> None:
        for process in self.processes:
            process.stop()
