"""What the host offers the supervisor and its processes: memory figures, orphans of PID 1, the terminal, systemd."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import MutableMapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

_STATM = Path("/proc/self/statm")


def memory_mb() -> float:
    """Resident memory of this process in megabytes. Where the system does not report it (macOS), the peak."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def reap_orphans(ours: AbstractSet[int]) -> None:
    """Reaps ended processes that are not in `ours`, which are awaited elsewhere.

    In a container the supervisor may be PID 1, and the kernel makes it the parent of every orphan.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in ours:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)


class Terminal:
    """The controlling terminal at the start, if any.

    SIGHUP has two meanings: a service is asked to load new code, and a program at a terminal has lost that terminal.
    """

    def __init__(self) -> None:
        self._had_one = _has_terminal()

    @property
    def is_gone(self) -> bool:
        return self._had_one and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


class Systemd:
    """Sends the state to systemd (`sd_notify`): a datagram to the socket in NOTIFY_SOCKET. Without systemd it does nothing."""

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        """Removes the variables from the environment: they are for this process, not for the processes it starts."""
        given = os.environ if environ is None else environ
        self._socket = given.pop("NOTIFY_SOCKET", "")
        microseconds, pid = given.pop("WATCHDOG_USEC", ""), given.pop("WATCHDOG_PID", "")
        ours = not pid or pid == str(os.getpid())
        self.watchdog_every = int(microseconds) / 1e6 / 3 if microseconds.isdigit() and ours and self._socket else None
        """Seconds: a third of the time after which systemd kills this process."""
        self._status = ""

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self) -> None:
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def _send(self, *lines: str) -> None:
        if not self._socket:
            return
        address = f"\0{self._socket[1:]}" if self._socket.startswith("@") else self._socket
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.setblocking(False)
            datagrams.sendto("\n".join(lines).encode(), address)
