"""The running server according to `postmaster.pid`, after checking that the process really serves this data folder."""

from __future__ import annotations

import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tenure.embedded.home import write_new
from tenure.embedded.processes import is_postmaster_of, wait_until
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
STOP_STEPS = (
    (FAST, 30.0),
    (IMMEDIATE, 10.0),
)  # seconds for the last checkpoint; after an immediate stop the next start recovers instead
NO_PROCESS = 2**31 - 1  # fits PostgreSQL's pid type and is above the largest pid of every kernel
SERVING = {"ready", "standby"}

USER = DATABASE = "tenure"
"""The role and the database that clients use."""


@dataclass(frozen=True)
class Postmaster:
    pid: int
    data: Path
    port: int
    sockets: Path | None
    state: str

    @property
    def is_serving(self) -> bool:
        return self.state in SERVING and self.sockets is not None

    def dsn(self, database: str = DATABASE) -> str:
        """A URI, because asyncpg supports no other form; psycopg and psql support both."""
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets))}&port={self.port}"

    @property
    def is_alive(self) -> bool:
        return is_postmaster_of(self.pid, self.data)


def recorded_postmaster(data: Path) -> Postmaster | None:
    """The content of the file. The process may have ended long ago."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
        pid, _, _, port, sockets, _, _, state = [line.strip() for line in lines + [""] * 8][:8]
        return Postmaster(int(pid), data, int(port or 0), Path(sockets) if sockets else None, state)
    except (OSError, ValueError):
        return None


def find_postmaster(data: Path) -> Postmaster | None:
    recorded = recorded_postmaster(data)
    return recorded if recorded and recorded.is_alive else None


def settled_postmaster(data: Path, within: float) -> Postmaster | None:
    """The server once it accepts connections; None if there is none or once it has stopped."""

    def settled() -> bool:
        found = find_postmaster(data)
        return found is None or found.is_serving

    if not wait_until(settled, within):
        raise ConfigError(
            f"the server on {data} has neither started nor stopped in {within:.0f} s: see its log, or end it manually"
        )
    return find_postmaster(data)


def stop_postmaster(postmaster: Postmaster) -> None:
    for step, patience in STOP_STEPS:
        with suppress(ProcessLookupError):
            if postmaster.is_alive:
                os.kill(postmaster.pid, step)
        if wait_until(lambda: not postmaster.is_alive, patience):
            return
        facts = {"server_pid": postmaster.pid, "seconds": patience, "signal": step.name}
        log.warning("PostgreSQL did not stop in time after %s", step.name, extra=facts)
    raise ConfigError(f"PostgreSQL (pid {postmaster.pid}) on {postmaster.data} does not stop: end it manually")


def disown_stale_pid(data: Path) -> None:
    """After a crash, the recorded pid may be that of an unrelated process or a zombie, and PostgreSQL would not start.

    The file is kept: from its other lines PostgreSQL detects whether orphans of the crashed server still use its memory.
    """
    recorded = recorded_postmaster(data)
    if recorded is None or recorded.is_alive:
        return
    file = data / "postmaster.pid"
    _, _, rest = file.read_text(errors="replace").partition("\n")
    file.unlink()
    write_new(file, f"{NO_PROCESS}\n{rest}")
    os.chown(file, data.stat().st_uid, data.stat().st_gid, follow_symlinks=False)
