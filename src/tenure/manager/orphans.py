"""In a container the supervisor may be PID 1, to which the kernel gives every orphan to bury."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet


def reap_orphans(ours: AbstractSet[int]) -> None:
    """Waits for ended processes that are not our own children; those have waiters already."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in ours:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)
