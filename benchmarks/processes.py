"""What processes cost, read from /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PARENT, _USER, _KERNEL, _ENDED_USER, _ENDED_KERNEL = 1, 11, 12, 13, 14  # fields of stat after the name


def parent_of(pid: int, name: str) -> int | None:
    """The parent of a process of that name; None if no such process runs on this machine."""
    with suppress(OSError):
        if name in Path(f"/proc/{pid}/comm").read_text():
            return int(_stat(pid)[_PARENT])
    return None


def cpu_of_family(head: int) -> float:
    """Seconds used by a process and its children, whether they still run or were waited for."""
    ticks = sum(int(_stat(head)[field]) for field in (_USER, _KERNEL, _ENDED_USER, _ENDED_KERNEL))
    for child in _children(head):
        with suppress(OSError):
            stat = _stat(child)
            ticks += int(stat[_USER]) + int(stat[_KERNEL])
    return ticks / _TICKS


def cpu_of_tree(head: int) -> float:
    """Seconds used by a process and everything that it started and that still runs."""
    used = 0.0
    with suppress(OSError):
        used = sum(int(_stat(head)[field]) for field in (_USER, _KERNEL)) / _TICKS
    return used + sum(cpu_of_tree(child) for child in _children(head))


def memory_of_family(head: int) -> int:
    """Bytes of memory that a process and its children have in use (RSS); shared pages count for each of them."""
    return sum(_memory(pid) for pid in (head, *_children(head)))


def _memory(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _children(head: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int(_stat(int(entry.name))[_PARENT]) == head:
                    found.append(int(entry.name))
    return found


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
