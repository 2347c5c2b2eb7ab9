"""`tenure`, for no longer than the process that started it: `python -m tenure.cli.attended PID worker ...`.

What a demo or a simulation starts must not outlive it, not even when that is killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from tenure.cli.main import main

_PR_SET_PDEATHSIG = 1


def attend(starter: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != starter:
        sys.exit(0)  # it died before we asked


if __name__ == "__main__":
    attend(int(sys.argv[1]))
    sys.argv[:2] = ["tenure"]
    main()
