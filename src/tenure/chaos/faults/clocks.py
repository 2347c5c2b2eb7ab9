"""The clock of a worker's machine, moved by libfaketime if that is installed."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tenure.chaos.faults.base import FaultResult
from tenure.chaos.testbed import Testbed

LIBRARIES = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)
OFFSETS = ("+3600", "-3600", "-10", "+1", "+0 x2")


def faketime() -> str | None:
    found = sorted(str(path) for pattern in LIBRARIES for path in Path("/").glob(pattern[1:]))
    return found[0] if found else None


def moved_clock(library: str, offset: str) -> dict[str, str]:
    """The environment of such a process. Its monotonic clock is right: it cannot be set on a real machine either."""
    return {"LD_PRELOAD": library, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}


async def move_clock(testbed: Testbed, random: Random) -> FaultResult:
    """A worker is killed and restarted on a machine whose clock is wrong."""
    library = faketime()
    assert library is not None
    worker, offset = testbed.pick_worker(random), random.choice(OFFSETS)
    worker.environment |= moved_clock(library, offset)
    testbed.workers.expect_kill(worker)
    worker.kill_all()
    return FaultResult(f"{worker.name}: {offset}")
