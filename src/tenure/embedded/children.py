"""Processes that this process has started and other processes may end."""

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
def _detach() -> None:
    for child in _children:
        # Other processes use it now. Without a return code, Popen would warn that it is still running.
        child.returncode = child.poll() or 0
