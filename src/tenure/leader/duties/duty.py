"""What all duties have in common."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from tenure.model.findings import Finding
from tenure.model.wakeup import Wakeup
from tenure.store.leases import Term
from tenure.store.link import Link


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The result of one round."""

    holds: bool
    """Whether the term is still held. If not, nothing was written."""
    touched: int = 0
    """Rows or jobs that were changed."""
    rest: float = 0.0
    """Seconds until the next round."""
    findings: list[Finding] = field(default_factory=list)
    """Shown to operators."""


class TermOver(Exception):  # noqa: N818 - reads as the fact it states
    """Another process may lead by now. Nothing was written."""


class Duty(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def wakes_on(self) -> Collection[Wakeup]:
        """The notifications that start a round at once."""
        ...

    @property
    def divisible(self) -> bool:
        """Works on batches of locked rows, so that several processes can do it at the same time."""
        ...

    async def run_once(self, link: Link, term: Term) -> RoundResult: ...
