"""Drills: one fault at a time, at default settings, and a clock on how fast work comes back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tenure.chaos.drills.failovers import failovers_in_order, failovers_killed
from tenure.chaos.drills.ground import Figure
from tenure.chaos.drills.kills import killed_machines, killed_processes
from tenure.chaos.drills.restarts import restarts
from tenure.chaos.drills.shutdowns import shutdowns

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Drill:
    name: str
    about: str
    run: Callable[[Tell], Coroutine[Any, Any, Figure]]


DRILLS = (
    Drill("restarts", "the rate of jobs after PostgreSQL was stopped and started", restarts),
    Drill("killed_processes", "kill -9 of a process that runs jobs, under its supervisor", killed_processes),
    Drill("killed_machines", "kill -9 of a whole worker, with another one left", killed_machines),
    Drill("failovers_in_order", "a leader is stopped: how long are its duties undone", failovers_in_order),
    Drill("failovers_killed", "kill -9 of a leader: how long are its duties undone", failovers_killed),
    Drill("shutdowns", "SIGTERM under load: nobody is late, no attempt is spent", shutdowns),
)

__all__ = ["DRILLS", "Drill", "Figure"]
