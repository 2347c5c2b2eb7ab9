"""How duties and requeuing report what they did: to other processes, to subscribers, and to the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from tenure.model.event_bus import Events
from tenure.model.wakeup import Wakeup


@dataclass(frozen=True, slots=True)
class Reporting:
    notify: Callable[[Wakeup], None] = lambda _: None
    """Wakes other processes, after the commit. If the notification is lost, they notice later; nothing else is lost."""
    events: Events = field(default_factory=Events)
    count_requeued: Callable[[str, str, str], None] = lambda _queue, _kind, _why: None
    """Called for each job that was taken from a worker that died."""
    dead_letter_level: int = logging.ERROR
    """Log level of jobs that become dead letters."""
    schedule_missed_level: int = logging.WARNING
    """Log level of planned times that no leader recorded in time."""
    schedule_skipped_level: int = logging.INFO
    """Log level of planned times that were skipped."""
