"""Processes that must not outlive the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(starter: int, number: signal.Signals = signal.SIGKILL) -> None:
    """From now on this process gets the signal when its starter dies, where the system can do that (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != starter:
        os._exit(0)  # it died before we asked
