"""The processes that this one has started and others may end."""

from __future__ import annotations

import atexit
import subprocess

_children: list[subprocess.Popen[bytes]] = []


def keep(child: subprocess.Popen[bytes]) -> None:
    _children.append(child)


def reap() -> None:
    """Collects those that have ended, so that they do not stay as zombies."""
    _children[:] = [child for child in _children if child.poll() is None]


@atexit.register
def _leave_them() -> None:
    for child in _children:
        # It serves others now; without a return code, Popen would warn that it still runs.
        child.returncode = child.poll() or 0
