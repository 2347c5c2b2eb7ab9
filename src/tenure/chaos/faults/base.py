"""What a fault is: how it is injected, and what it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tenure.chaos.testbed import Testbed


@dataclass(frozen=True, slots=True)
class FaultResult:
    target: str
    """What was hit, for how long."""
    stopped: tuple[int, ...] = ()
    """Processes that were stopped while the fault was active."""


class FaultSkipped(Exception):  # noqa: N818 - not an error
    """The fault had no target at this moment."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    inject: Callable[[Testbed, Random], Awaitable[FaultResult]]
    """Injects the fault, and returns when it is over. Raises `FaultSkipped` if it has no target."""
    weight: float
    about: str
    in_lulls: bool = False
    """Also injected in a lull: it breaks no connection, so the checker can see that it does not delay other work."""
    heal: Callable[[Testbed], Awaitable[None]] | None = None
    """Undoes what may be left of it when the campaign ends."""

    @property
    def name(self) -> str:
        return self.inject.__name__
