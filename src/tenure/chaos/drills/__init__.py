"""Drills: one fault at a time, at default settings, and a measurement of how fast work continues."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tenure.chaos.drills.environment import DrillResult
from tenure.chaos.drills.failovers import failovers_advisory, failovers_in_order, failovers_killed
from tenure.chaos.drills.kills import killed_machines, killed_processes
from tenure.chaos.drills.restarts import restarts
from tenure.chaos.drills.shutdowns import shutdowns

ShowText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Drill:
    name: str
    about: str
    run: Callable[[ShowText], Coroutine[Any, Any, DrillResult]]


DRILLS = (
    Drill("restarts", "PostgreSQL is stopped and started: jobs per second afterwards", restarts),
    Drill("killed_processes", "kill -9 of a process that runs jobs; its supervisor stays alive", killed_processes),
    Drill("killed_machines", "kill -9 of a supervisor and its processes, with another worker left", killed_machines),
    Drill("failovers_in_order", "a leader is stopped: time until another worker performs its duties", failovers_in_order),
    Drill("failovers_killed", "kill -9 of a leader: time until another worker performs its duties", failovers_killed),
    Drill(
        "failovers_advisory",
        "kill -9 of a leader that holds an advisory lock: time until another worker performs its duties",
        failovers_advisory,
    ),
    Drill("shutdowns", "SIGTERM under load: every worker exits in time, and no attempt is used up", shutdowns),
)

__all__ = ["DRILLS", "Drill", "DrillResult"]
