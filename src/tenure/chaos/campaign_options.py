"""The options of a campaign, its progress, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tenure.chaos.plan import STORM_RATE


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    seed: int
    seconds: float = 600.0
    jobs: int = 0
    faults: int = 0
    steps: int = 0
    """Faults are injected for at least `seconds`, until at least `jobs` were accepted, at least `faults` were done, and workflows
    have recorded at least this many `steps`."""
    workflows: float = 0.01
    """Which share of the many short jobs are workflows."""
    rate: float = STORM_RATE
    """Faults a second in a storm. With fewer, the same time sees more jobs."""
    lease: float = 3.0
    workers: int = 4
    processes: int = 2
    concurrency: int = 100
    backlog: int = 10_000
    dsn: str | None = None
    """A server of the user; None: an embedded one."""
    only: tuple[str, ...] = ()
    """Kinds of faults; empty: all that are possible here."""


@dataclass(frozen=True)
class CampaignProgress:
    phase: str
    elapsed: float
    accepted: int
    live: int
    steps: int
    faults: int
    kinds: int
    latest: str


ShowProgress = Callable[[CampaignProgress], None]


@dataclass(frozen=True)
class CampaignOutcome:
    options: CampaignOptions
    accepted: int
    faults: dict[str, int]
    unavailable: dict[str, str]
    """Kinds of faults that are not possible here, and why."""
    calls: dict[str, int]
    unexpected_errors: dict[str, int]
    """Errors raised to clients that are not of a documented type."""
    unexpected_exits: list[str]
    """Workers that exited without being stopped, and processes that outlived their worker."""
    unexpected_refusals: dict[str, int]
    """Errors with which PostgreSQL refused a statement of a worker, and that no fault has caused."""
