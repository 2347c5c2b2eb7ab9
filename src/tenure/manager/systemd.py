"""Tells systemd how we are: `sd_notify`, which is a datagram to a socket that it names. Without systemd nothing happens."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress


class Systemd:
    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        """Takes the variables out of the environment: they are for us, not for the processes that we start."""
        given = os.environ if environ is None else environ
        self._socket = given.pop("NOTIFY_SOCKET", "")
        microseconds, pid = given.pop("WATCHDOG_USEC", ""), given.pop("WATCHDOG_PID", "")
        ours = not pid or pid == str(os.getpid())
        self.watchdog_every = int(microseconds) / 1e6 / 3 if microseconds.isdigit() and ours and self._socket else None
        """Seconds: a third of what it waits before it ends us."""
        self._status = ""

    def ready(self) -> None:
        self._tell("READY=1")

    def reloading(self) -> None:
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def alive(self) -> None:
        self._tell("WATCHDOG=1")

    def status(self, words: str) -> None:
        if words != self._status:
            self._status = words
            self._tell(f"STATUS={words}")

    def _tell(self, *words: str) -> None:
        if not self._socket:
            return
        address = f"\0{self._socket[1:]}" if self._socket.startswith("@") else self._socket
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.sendto("\n".join(words).encode(), address)
