"""The running server, as its `postmaster.pid` tells, believed only if that process really serves this data."""

from __future__ import annotations

import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tenure.embedded.home import write_new
from tenure.embedded.processes import is_postmaster_of, wait_until
from tenure.model.errors import ConfigError

log = logging.getLogger("tenure.embedded")

FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
STOP_STEPS = (
    (FAST, 30.0),
    (IMMEDIATE, 10.0),
)  # seconds for the last checkpoint; then recovery does that at the next start
NO_PROCESS = 2**31 - 1  # fits PostgreSQL's pid type and lies above every kernel's largest pid
SERVING = {"ready", "standby"}


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

    @property
    def is_alive(self) -> bool:
        return is_postmaster_of(self.pid, self.data)


def noted_postmaster(data: Path) -> Postmaster | None:
    """What the file says: perhaps a process long gone."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="replace").splitlines()
        pid, _, _, port, sockets, _, _, state = [line.strip() for line in lines + [""] * 8][:8]
        return Postmaster(int(pid), data, int(port or 0), Path(sockets) if sockets else None, state)
    except (OSError, ValueError):
        return None


def find_postmaster(data: Path) -> Postmaster | None:
    noted = noted_postmaster(data)
    return noted if noted and noted.is_alive else None


def settled_postmaster(data: Path, within: float) -> Postmaster | None:
    """The serving server, once it has finished starting; None once there is none, or it has finished stopping."""

    def settled() -> bool:
        found = find_postmaster(data)
        return found is None or found.is_serving

    if not wait_until(settled, within):
        raise ConfigError(
            f"the server on {data} has neither started nor stopped in {within:.0f} s: see its log, or end it by hand"
        )
    return find_postmaster(data)


def stop_postmaster(postmaster: Postmaster) -> None:
    for step, patience in STOP_STEPS:
        with suppress(ProcessLookupError):
            if postmaster.is_alive:
                os.kill(postmaster.pid, step)
        if wait_until(lambda: not postmaster.is_alive, patience):
            return
        log.warning("PostgreSQL (pid %d) did not end within %.0f s of %s", postmaster.pid, patience, step.name)
    raise ConfigError(f"PostgreSQL (pid {postmaster.pid}) on {postmaster.data} does not stop: end it by hand")


def disown_stale_pid(data: Path) -> None:
    """After a crash, the noted pid may be a stranger's or a zombie's, and PostgreSQL would refuse to start over it.

    The file stays: its other lines let PostgreSQL see whether orphans of the crashed server still use its memory.
    """
    noted = noted_postmaster(data)
    if noted is None or noted.is_alive:
        return
    file = data / "postmaster.pid"
    _, _, rest = file.read_text(errors="replace").partition("\n")
    file.unlink()
    write_new(file, f"{NO_PROCESS}\n{rest}")
    os.chown(file, data.stat().st_uid, data.stat().st_gid, follow_symlinks=False)
