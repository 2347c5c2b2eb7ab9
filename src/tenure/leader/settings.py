"""Settings of the leader and its duties. Imports no driver: settings are read early."""

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
    event_retention: float = 7 * 86400.0
    """Of events that were sent to workflows."""
    audit_retention: float = 365 * 86400.0
    """Of entries of the audit log."""
    dead_letter_retention: float = 30 * 86400.0
    strategy: Strategy = "lease"
    rotate: float = 60.0
    """Seconds after which a duty is handed to another process, if there is one. 0: never."""
    term: float = 10.0
    """Seconds for which the lease of a duty lasts without a heartbeat."""
    heartbeat: float = 2.0
    reap_every: float = 5.0
    clean_every: float = 1200.0
    dead_letter_level: int = logging.ERROR
    """Log level of jobs that become dead letters."""
    schedule_missed_level: int = logging.WARNING
    """Log level of planned times that no leader recorded in time."""
    schedule_skipped_level: int = logging.INFO
    """Log level of planned times that were skipped."""
