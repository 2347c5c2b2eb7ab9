"""The clock of a worker's machine, moved by libfaketime where that is installed."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tenure.chaos.field import Field

LIBRARIES = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)
OFFSETS = ("+3600", "-3600", "-10", "+1", "+0 x2")


def faketime() -> str | None:
    found = sorted(str(path) for pattern in LIBRARIES for path in Path("/").glob(pattern[1:]))
    return found[0] if found else None


async def move_clock(field: Field, draws: Random) -> str:
    """A worker dies and comes back on a machine that has the time wrong."""
    library = faketime()
    assert library is not None
    worker, offset = field.a_worker(draws), draws.choice(OFFSETS)
    # The monotonic clock cannot be set on a real machine either.
    worker.environment |= {
        "LD_PRELOAD": library,
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    field.fleet.doom(worker)
    worker.kill_all()
    return f"{worker.name}: {offset}"
