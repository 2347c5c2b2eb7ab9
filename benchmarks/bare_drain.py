"""(p) The drain of a hand-written loop on asyncpg, which promises nothing: the script that is also measured beside peers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.peers.contestant import Contestant, figure_of
from benchmarks.peers.registry import BARE
from benchmarks.peers.scripts import Script
from benchmarks.peers.sizes import PeerSizes
from benchmarks.server import Server


@dataclass(frozen=True, slots=True)
class BareDrain:
    rate: float
    """Jobs a second, by the wall clock."""
    wal: float
    """Bytes per job."""
    server_cpu: float | None
    """Microseconds per job."""


def measure(server: Server, count: int, processes: int) -> BareDrain:
    script, figures = Script(BARE, Path(sys.executable)), Figures()
    loop = Contestant(server, script, script.describe(), PeerSizes(jobs=count), figures)
    with loop.in_new_database():
        loop.enqueue_bulk("bulk")
        loop.drain(processes)
    rate, wal, cpu = (figure_of(loop.name, f"drain_{processes}{what}") for what in ("", "_wal", "_cpu"))
    return BareDrain(figures.median(rate), figures.median(wal), figures.median(cpu) if figures.has(cpu) else None)
