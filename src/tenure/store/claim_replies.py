"""What a claim returns besides its jobs, and how jobs are named in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

Reply_co = TypeVar("Reply_co", covariant=True)


class JobPosition(NamedTuple):
    """Where a job is among the pending ones."""

    queue: str
    priority: int
    position: int


class PeekedJob(NamedTuple):
    """A pending job that a claim would take."""

    job_id: str
    kind: str
    queue: str
    priority: int
    position: int


@dataclass(slots=True)
class ClaimReply:
    """Of a claim of jobs without a limit."""

    holds: bool
    returns: dict[str, int]
    paused: list[str]
    picked: int
    """How many rows the claim locked. One that changed in that moment is locked but not claimed."""
    position: int
    xmin: int
    xid: int
    limits: int = 0
    """The version of the limits in the database. If the worker knows another one, nothing was claimed."""
    peeked: list[PeekedJob] = field(default_factory=list)
    """Jobs that would be claimed, if the claim was asked to peek."""


@dataclass(frozen=True, slots=True)
class LimitedClaimReply:
    """Of a claim under limits."""

    holds: bool
    seen: int
    chosen: int
    cursors: dict[str, str] | None
    more: bool
    """There are free slots left, and groups that were not looked at."""
    around: bool
    """The claim reached the last group of a queue and continued with the first."""
    stale: bool
    wait: float | None
    """Seconds until the next start that a rate allows."""
    peeked: list[PeekedJob] = field(default_factory=list)
    """Jobs that would be claimed, if the claim was asked to peek."""


class _Replying(Protocol[Reply_co]):
    @property
    def reply(self) -> Reply_co | None: ...


def reply_of(rows: Sequence[_Replying[Reply_co]]) -> Reply_co:
    """A claim returns its reply in the first row, and its jobs in the others."""
    reply = rows[0].reply
    if reply is None:
        raise RuntimeError("a claim has returned no reply: please report this")
    return reply
