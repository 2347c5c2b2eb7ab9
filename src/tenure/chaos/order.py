"""What is asked of a campaign, what can be seen of it, and what it came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Order:
    seed: int
    seconds: float = 600.0
    jobs: int = 0
    faults: int = 0
    """Faults come for so long, and go on until there were so many of both."""
    lease: float = 3.0
    workers: int = 4
    processes: int = 2
    concurrency: int = 100
    backlog: int = 10_000
    dsn: str | None = None
    """A server that is not ours; None: an embedded one."""
    only: tuple[str, ...] = ()
    """Kinds of faults; empty: all that can come here."""


@dataclass(frozen=True)
class Sight:
    """What can be seen of a campaign under way."""

    phase: str
    elapsed: float
    accepted: int
    live: int
    faults: int
    kinds: int
    latest: str


Show = Callable[[Sight], None]


@dataclass(frozen=True)
class Outcome:
    order: Order
    accepted: int
    faults: dict[str, int]
    left_out: dict[str, str]
    """Kinds that could not come here, and why."""
    calls: dict[str, int]
    surprises: dict[str, int]
    """Errors that clients met and that are of no kind we promise."""
    gave_up: list[str]
    """Workers that ended though nobody had asked them to."""
