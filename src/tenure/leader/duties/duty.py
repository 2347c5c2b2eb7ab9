"""What all duties have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from tenure.model.events import Events
from tenure.store.leases import Term
from tenure.store.link import Link


@dataclass(frozen=True, slots=True)
class Report:
    """What a round came to. Without the term nothing was written."""

    holds: bool
    touched: int = 0
    rest: float = 0.0
    findings: list[str] = field(default_factory=list)
    """What people should know of."""


class TermOver(Exception):  # noqa: N818 - reads as the fact it states
    """Another may lead by now. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Outlets:
    """How a duty reports what it did."""

    tell: Callable[[str], None] = lambda _: None
    """Wakes other processes, after the commit: what it fails to send costs time, and nothing else."""
    events: Events = field(default_factory=Events)
    dead_letter_level: int = logging.ERROR
    """At which a job is logged that became a dead letter."""
    schedule_missed_level: int = logging.WARNING
    """At which planned times of a schedule are logged that no leader recorded in time."""
    schedule_skipped_level: int = logging.INFO
    """At which a planned time is logged that was skipped."""


class Duty(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def hears(self) -> Collection[str]:
        """The words at which it looks at once."""
        ...

    @property
    def divisible(self) -> bool:
        """Goes by batches of locked rows, so that many may do it at once."""
        ...

    async def run_once(self, link: Link, term: Term) -> Report: ...
