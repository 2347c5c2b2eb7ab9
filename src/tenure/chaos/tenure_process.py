"""A command of `tenure` that a campaign runs, as a user would start it: a worker, or the web server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

STOP_TIMEOUT = 10.0  # seconds after each signal, at the end


@dataclass
class TenureProcess:
    name: str
    dsn: str
    folder: Path
    arguments: list[str]
    """Of the command line, after `tenure`."""
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "tenure.cli.run_with_parent", str(os.getpid()), *self.arguments]
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

    def kill_all(self) -> None:
        """Kills it and its children at once, like a machine that loses power."""
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
                self.process.wait(STOP_TIMEOUT)
