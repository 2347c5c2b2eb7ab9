"""Real worker processes for tests: started, watched, signalled, and never left behind."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tenure.chaos.workers import children_of
from tests.planted_secrets import assert_no_secret


def run_process(command: Sequence[str], *, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end and captures what it prints, which must not contain a secret."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert_no_secret(done.stdout + done.stderr)
    if check:
        done.check_returncode()
    return done


def free_port() -> int:
    """Outside the range from which the system takes ports for connections and for servers that ask for any: one of those could
    take it before the server that it is for has started."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = 20_000 + 400 * (worker % 30) + random.randrange(400)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class WorkerProcess:
    """`tenure worker` as a user starts it, in a session of its own so that a test can stop or kill all of it."""

    def __init__(
        self,
        folder: Path,
        dsn: str,
        *options: str,
        app: str = "jobs:app",
        env: dict[str, str] | None = None,
        command: str = "worker",
    ) -> None:
        """One worker process by default; `tenure up` uses its own settings."""
        count = ["--processes", "1"] if command == "worker" else []
        self.log = folder / f"worker-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tenure", command, "--app", app, "--dsn", dsn, *count, *options],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "TENURE_WEB_LISTEN": "0", **(env or {})},
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def children(self) -> list[int]:
        """The worker processes, without the supervisor."""
        return children_of(self.pid)

    def signal_all(self, number: int) -> None:
        """To supervisor and children alike."""
        for pid in (self.pid, *self.children()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        return self.process.wait(timeout)

    def kill(self) -> None:
        """The whole worker, at once, as a machine that loses power."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGCONT)
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def worker_process(folder: Path, dsn: str, *options: str, **more: object) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(folder, dsn, *options, **more)  # type: ignore[arg-type]
    try:
        yield worker
    finally:
        worker.kill()
    assert_no_secret(worker.said)
