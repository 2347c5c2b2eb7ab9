"""A real `tenure worker`, as a user starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from benchmarks.processes import cpu_of_family, memory_of_family

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0  # seconds to start, and to stop


class Worker:
    """Entered when it takes jobs; left when all of it has ended."""

    def __init__(
        self,
        dsn: str,
        *,
        app: str = "benchmarks.jobs:app",
        children: int = 1,
        concurrency: int | None = None,
        package: Path | None = None,
    ) -> None:
        """`package`: the folder of a copy of Tenure to run instead of this one."""
        command = [sys.executable, "-m", "tenure", "worker", "--app", app, "--dsn", dsn, "-p", str(children)]
        command += [] if concurrency is None else ["-c", str(concurrency)]
        self._children = children
        self._log = tempfile.NamedTemporaryFile(prefix="tenure-bench-worker-")  # noqa: SIM115 - closed with the worker
        environment = os.environ if package is None else os.environ | {"PYTHONPATH": str(package)}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )

    @property
    def said(self) -> str:
        return Path(self._log.name).read_text("utf-8", "replace")

    def cpu(self) -> float:
        """Seconds used until now by supervisor and children."""
        return cpu_of_family(self._process.pid)

    def memory(self) -> int:
        """Bytes in use by supervisor and children."""
        return memory_of_family(self._process.pid)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its children die with it
            self._process.wait()

    def demand_alive(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"the worker ended with {self._process.returncode}:\n{self.said}")

    def __enter__(self) -> Self:
        deadline = time.monotonic() + PATIENCE
        while self.said.count("ready: ") < self._children:
            self.demand_alive()
            if time.monotonic() > deadline:
                self.__exit__()
                raise TimeoutError(f"the worker did not get ready:\n{self.said}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()
        self._log.close()
