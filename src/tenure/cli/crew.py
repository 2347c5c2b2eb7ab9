"""The workers of a demo or a simulation: `tenure worker` as anyone would start it, its log in a file."""

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
PATIENCE = 10.0  # seconds after each signal


class Crew:
    def __init__(self, settings: Settings, app: str, log: Path, *, processes: int, concurrency: int) -> None:
        self.log = log
        command = [sys.executable, "-m", "tenure.cli.attended", str(os.getpid()), "worker", "--app", app]
        command += ["--processes", str(processes), "--concurrency", str(concurrency)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Not in the arguments, which everyone on this machine can read.
                env={**os.environ, "TENURE_DSN": settings.dsn or "", "TENURE_SCHEMA": settings.schema},
                # Ctrl-C is for us, who stop it when it is time.
                process_group=0,
            )

    def check(self) -> None:
        """Raises when it has ended by itself."""
        if self._process.poll() is not None:
            raise click.ClickException(
                f"the workers ended by themselves (exit code {self._process.returncode})\n{self.last_words}"
            )

    @property
    def last_words(self) -> str:
        lines = self.log.read_text("utf-8", "replace").splitlines()[-LAST_LINES:]
        return "\n".join(["the last lines of their log:", *(f"  {line}" for line in lines)])

    def stop(self) -> None:
        """First the usual way, then at once, then by force."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                return
            self._process.send_signal(number)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                continue


@contextmanager
def crew(settings: Settings, app: str, log: Path, *, processes: int, concurrency: int) -> Iterator[Crew]:
    hired = Crew(settings, app, log, processes=processes, concurrency=concurrency)
    try:
        yield hired
    finally:
        hired.stop()
