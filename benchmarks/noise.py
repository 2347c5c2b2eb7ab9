"""How much of the machine others used meanwhile, and how fast it was: what spoils a figure should stand beside it."""

from __future__ import annotations

import os
import resource
import statistics
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.server import Server

_IDLE, _WAITING, _GUEST = 3, 4, 8  # fields of /proc/stat that are not work, or counted twice


_SPINS, _LOOPS = 12, 300_000  # the first spins wake a core that slept


class StepNoise(NamedTuple):
    step: str
    cores: float | None
    """That other processes kept busy meanwhile."""
    speed_ms: float
    """What a fixed piece of work took before it."""


class Noise:
    """From its making on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.speed_ms = _speed_ms()
        self._began = time.perf_counter()
        self._others = self._others_so_far()

    def cores(self) -> float | None:
        """How many cores other processes kept busy, on average. None where that cannot be told."""
        others = self._others_so_far()
        if others is None or self._others is None:
            return None
        return max(0.0, (others - self._others) / (time.perf_counter() - self._began))

    def of_step(self, step: str) -> StepNoise:
        return StepNoise(step, self.cores(), self.speed_ms)

    def _others_so_far(self) -> float | None:
        server = self._server.cpu()
        return None if server is None else _busy() - _own() - server


def _speed_ms() -> float:
    """What a fixed piece of work costs. It grows when neighbours on the same host share our cores unseen."""
    return statistics.median(_spin() for _ in range(_SPINS)) * 1000


def _spin() -> float:
    began = time.thread_time()
    for _ in range(_LOOPS):
        pass
    return time.thread_time() - began


def _busy() -> float:
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    work = sum(value for place, value in enumerate(fields[:_GUEST]) if place not in (_IDLE, _WAITING))
    return work / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    """This process and the workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
