"""Runs the commands of a peer's script, and its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.peers.protocol import Age, Described, Message, Ready, Timed, receive
from benchmarks.peers.registry import Candidate
from benchmarks.processes import cpu_of_tree
from benchmarks.workers import ROOT

PATIENCE = 300.0  # seconds for one command
GRACE = 5.0  # seconds to read what a killed worker has printed
START = 60.0  # seconds for a worker to get ready

M = TypeVar("M", bound=Message)


class PeerFailedError(Exception):
    """The script of a peer failed, with what it printed last."""


@dataclass(frozen=True)
class Script:
    """The script of one peer, run by the Python of its virtual environment."""

    candidate: Candidate
    python: Path

    def describe(self) -> Described:
        return self._call(Described, "describe")

    def prepare(self, dsn: str) -> None:
        self._run("prepare", "--dsn", dsn)

    def enqueue(self, command: str, dsn: str, count: int, rate: float = 0) -> Timed:
        return self._call(Timed, command, "--dsn", dsn, "--count", str(count), "--rate", str(rate))

    @contextmanager
    def worker(self, dsn: str, processes: int, described: Described) -> Iterator[WorkerGroup]:
        """All processes are connected and wait for `go`."""
        each, copies = (processes, 1) if described.own_processes else (1, processes)
        command = self._command("worker", "--dsn", dsn, "--processes", str(each))
        group = WorkerGroup([WorkerScript(command) for _ in range(copies)])
        try:
            group.await_ready()
            yield group
        finally:
            group.stop()

    def _call(self, expected: type[M], *arguments: str) -> M:
        for line in reversed(self._run(*arguments).splitlines()):
            if isinstance(message := receive(line), expected):
                return message
        raise PeerFailedError(f"{self.candidate.name} {arguments[0]} printed no {expected.__name__}")

    def _run(self, *arguments: str) -> str:
        try:
            ended = subprocess.run(
                self._command(*arguments),
                cwd=ROOT,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PeerFailedError(f"{arguments[0]} did not end in {PATIENCE:.0f} s") from error
        if ended.returncode:
            raise PeerFailedError(f"{arguments[0]}: {_last_line(ended.stderr)}")
        return ended.stdout

    def _command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", self.candidate.module, *arguments]


class WorkerScript:
    """One `worker` command in a process group of its own. A thread reads what it prints."""

    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.NamedTemporaryFile(prefix="tenure-bench-peer-")  # noqa: SIM115 - closed by stop
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        self.ages: list[float] = []
        self.ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def cpu(self) -> float:
        return cpu_of_tree(self._process.pid)

    def demand_alive(self) -> None:
        if self._process.poll() is not None:
            raise PeerFailedError(f"the worker ended: {_last_line(Path(self._errors.name).read_text('utf-8', 'replace'))}")

    def request_stop(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join(GRACE)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match receive(line):
                case Ready():
                    self.ready.set()
                case Age(age_ms):
                    self.ages.append(age_ms)
                case _:
                    print(line, end="", file=sys.stderr)


@dataclass(frozen=True)
class WorkerGroup:
    scripts: list[WorkerScript]

    @property
    def ages(self) -> list[float]:
        return [age for script in self.scripts for age in script.ages]

    def await_ready(self) -> None:
        for script in self.scripts:
            if not script.ready.wait(START):
                script.demand_alive()
                raise PeerFailedError(f"the worker did not get ready in {START:.0f} s")

    def go(self) -> None:
        for script in self.scripts:
            script.go()

    def cpu(self) -> float:
        return sum(script.cpu() for script in self.scripts)

    def demand_alive(self) -> None:
        for script in self.scripts:
            script.demand_alive()

    def request_stop(self) -> None:
        for script in self.scripts:
            script.request_stop()

    def stop(self) -> None:
        for script in self.scripts:
            script.kill()


def _environment() -> dict[str, str]:
    """Peers must not see the packages of this Python."""
    return {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
