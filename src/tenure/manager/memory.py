"""How much memory this process holds."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_STATM = Path("/proc/self/statm")


def memory_mb() -> float:
    """Resident, in megabytes. Where the system does not tell (macOS), the most it ever held."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
