"""Starts `tenure worker` for a demo or a simulation. Its log goes to a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tenure.settings import Settings

LAST_LINES = 12
STOP_TIMEOUT = 10.0  # seconds after each signal


class WorkerProcess:
    def __init__(self, settings: Settings, app: str, log: Path, *, processes: int, concurrency: int) -> None:
        self.log = log
        command = [sys.executable, "-m", "tenure.cli.run_with_parent", str(os.getpid()), "worker", "--app", app]
        command += ["--processes", str(processes), "--concurrency", str(concurrency)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Not as arguments, which every user of this machine can read.
                env={**os.environ, "TENURE_DSN": settings.dsn or "", "TENURE_SCHEMA": settings.schema},
                # Ctrl-C must reach only this process, which then stops the workers.
                process_group=0,
            )

    def check(self) -> None:
        """Raises if it has exited."""
        if self._process.poll() is not None:
            raise click.ClickException(f"the workers exited (exit code {self._process.returncode})\n{self.log_tail}")

    @property
    def log_tail(self) -> str:
        lines = self.log.read_text("utf-8", "replace").splitlines()[-LAST_LINES:]
        return "\n".join(["the last lines of their log:", *(f"  {line}" for line in lines)])

    def stop(self) -> None:
        """Asks it to shut down, then to stop at once, then kills it."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                return
            self._process.send_signal(number)
            try:
                self._process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                continue


@contextmanager
def worker_process(settings: Settings, app: str, log: Path, *, processes: int, concurrency: int) -> Iterator[WorkerProcess]:
    workers = WorkerProcess(settings, app, log, processes=processes, concurrency=concurrency)
    try:
        yield workers
    finally:
        workers.stop()
