"""What can be said of how the fleet's duties are done. Imports no driver: settings are read early."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal, get_args

Strategy = Literal["lease", "shared", "advisory"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)


@dataclass(frozen=True, kw_only=True)
class LeaderSettings:
    retention: float = 7 * 86400.0
    """Seconds for which finished jobs are kept."""
    dead_letter_retention: float = 30 * 86400.0
    strategy: Strategy = "lease"
    rotate: float = 60.0
    """Seconds after which a duty is handed over, if there is somebody else. 0: never."""
    term: float = 10.0
    """Seconds for which a lease lasts without a heartbeat."""
    heartbeat: float = 2.0
    reap_every: float = 5.0
    clean_every: float = 1200.0
    dead_letter_level: int = logging.ERROR
    """At which a job is logged that became a dead letter."""
    schedule_missed_level: int = logging.WARNING
    """At which planned times of a schedule are logged that no leader recorded in time."""
    schedule_skipped_level: int = logging.INFO
    """At which a planned time is logged that was skipped."""
