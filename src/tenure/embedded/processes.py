"""Identifies processes. A pid alone is not enough, because pids are reused."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")
HAS_PROC = (PROC / "self" / "stat").exists()
POSTMASTER_NAMES = {"postgres", "postmaster"}


def start_time(pid: int) -> str | None:
    """When this process started, in the notation of the system. None: it has ended (a zombie too)."""
    return _start_time_from_proc(pid) if HAS_PROC else _start_time_from_ps(pid)


def is_postmaster_of(pid: int, data: Path) -> bool:
    return _serves_by_proc(pid, data) if HAS_PROC else _serves_by_ps(pid, data)


def wait_until(condition: Callable[[], bool], within: float, every: float = 0.02) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every)
    return True


def _start_time_from_proc(pid: int) -> str | None:
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may contain spaces and parentheses.
    state, *later = stat.rpartition(")")[2].split()
    return None if state in "ZX" else later[18]


def _serves_by_proc(pid: int, data: Path) -> bool:
    process = PROC / str(pid)
    try:
        arguments = os.fsdecode((process / "cmdline").read_bytes()).split("\0")
    except OSError:
        return False
    if Path(arguments[0]).name not in POSTMASTER_NAMES:
        return False
    return str(data) in arguments or _folder_of(process) == data


def _folder_of(process: Path) -> Path | None:
    """A postmaster works in its data folder, even if it was started by a relative path or the folder has moved."""
    try:
        return (process / "cwd").readlink()
    except OSError:
        return None


def _start_time_from_ps(pid: int) -> str | None:
    state, _, began = _ps(pid, "stat=,lstart=").partition(" ")
    return None if not state or state.startswith("Z") else began.strip()


def _serves_by_ps(pid: int, data: Path) -> bool:
    program, separator, _ = _ps(pid, "command=").partition(f" -D {data}")
    return bool(separator) and Path(program).name in POSTMASTER_NAMES


def _ps(pid: int, columns: str) -> str:
    command = ["ps", "-ww", "-o", columns, "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stdout.strip()
