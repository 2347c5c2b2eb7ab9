"""`tenure` as a separate process, with or without a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.planted_secrets import assert_no_secret

FOREIGN = ("TENURE_", "PG", "DATABASE_URL", "COLUMNS", "FORCE_COLOR", "NO_COLOR")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


class Started:
    def __init__(self, cwd: Path, *words: str, columns: int | None = None, **env: str) -> None:
        """`columns`: the width of its terminal; without it the output is a pipe."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        ours, theirs = pty.openpty() if columns else os.pipe()
        if columns:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tenure", *words],
            cwd=cwd,
            env={**clean, "TERM": "xterm-256color", "TENURE_WEB_LISTEN": "0", **env},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            process_group=0,
        )
        os.close(theirs)
        os.set_blocking(ours, False)
        self._ours = ours
        self.raw = ""

    def read(self) -> bool:
        """Reads new output. False: there will be no more."""
        with suppress(BlockingIOError):
            try:
                said = os.read(self._ours, 65536)
            except OSError as error:
                if isinstance(error, BlockingIOError):
                    raise
                said = b""  # the other end of the terminal is closed
            self.raw += said.decode("utf-8", "replace")
            return bool(said)
        return True

    @property
    def said(self) -> str:
        """The output without control characters."""
        return CONTROL.sub("", self.raw)

    def says(self, words: str, within: float = 60) -> bool:
        deadline = time.monotonic() + within
        while words not in self.said and time.monotonic() < deadline and self.read():
            time.sleep(0.02)
        return words in self.said

    def ends(self, within: float = 90) -> int:
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and self.read():
            time.sleep(0.02)
        return self._process.wait(max(1.0, deadline - time.monotonic()))

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        self._read_rest()
        os.close(self._ours)

    def _read_rest(self) -> None:
        """The last output. Processes that it started may hold the pipe open, so this does not wait for its end."""
        before = None
        while before != len(self.raw) and self.read():
            before = len(self.raw)


@contextmanager
def started(cwd: Path, *words: str, columns: int | None = None, **env: str) -> Iterator[Started]:
    process = Started(cwd, *words, columns=columns, **env)
    try:
        yield process
    finally:
        process.kill()
    assert_no_secret(process.said)
