"""What may keep a job from running, as the statement that explains it reports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitGroup:
    """A limit that applies to the job, and the job's group in it."""

    name: str
    line: str
    running: int
    most: int | None
    running_of_key: int
    most_of_key: int | None
    rate: int | None
    seconds: float | None
    wait: float | None
    """Seconds until the next start; None: one may start now."""
    rate_of_key: int | None
    seconds_of_key: float | None
    wait_of_key: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingChain:
    """A chain that a job waits for."""

    chain_id: str
    job_id: str | None
    """Its live link; None if it has ended, and that was not counted yet."""
    kind: str | None
    state: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """What a job waits for."""

    total: int
    missing: int | None
    on_failure: str
    failed: str | None
    """The first chain that did not complete."""
    chains: list[MissingChain]
    """The first of those that are missing."""
    open: bool = False
    """A group to which members are still being added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingStep:
    """What a workflow waits for."""

    name: str
    what: str
    state: str
    due_at: str | None
    event: str | None
    key: str | None
