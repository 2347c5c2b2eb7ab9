"""The statements about queues: pauses, notifications, and how much work waits for whom; as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from tenure.model.wakeup import Wakeup
from tenure.store.json_columns import Json
from tenure.store.query import BOOLEAN, INTEGER, TEXT, Query


class QueueRow(NamedTuple):
    name: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None


class LaneRow(NamedTuple):
    """A priority that has pending jobs."""

    queue: str
    priority: int
    unknown: Json[list[str]]
    """Kinds that the worker does not know."""


class DemandRow(NamedTuple):
    pool: str
    jobs: int
    seconds: float
    """For which the oldest of them waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a pool can run."""

    pool: str
    queues: Sequence[str]
    kinds: Sequence[str]
    capabilities: Sequence[str] = ()


def pause(queue: str, reason: str | None, by: str | None) -> Query[bool]:
    """Returns whether it was not paused before."""
    return Query("queues/pause_queue", BOOLEAN, {"queue": queue, "reason": reason, "by": by})


def resume(queue: str) -> Query[str]:
    """Returns the queue's name if it was paused."""
    return Query("queues/resume_queue", TEXT, {"queue": queue})


def find_all() -> Query[QueueRow]:
    return Query("queues/find_queues", QueueRow)


def notify(channel: str, wakeups: Iterable[Wakeup]) -> Query[int]:
    return Query("queues/notify", INTEGER, {"channel": channel, "payloads": payloads(wakeups)})


def notify_after(channel: str, wakeups: Iterable[Wakeup]) -> Query[int]:
    """Right after a commit, on the same connection."""
    return Query("queues/notify_after", INTEGER, {"channel": channel, "payloads": payloads(wakeups)})


def payloads(wakeups: Iterable[Wakeup]) -> str:
    """As JSON."""
    return json.dumps([wakeup.payload() for wakeup in wakeups])


def survey(queues: str, kinds: str) -> Query[LaneRow]:
    return Query("queues/survey_queues", LaneRow, {"queues": queues, "kinds": kinds})


def measure_demand(wants: Iterable[Wants], *, look: int, now: datetime | None = None) -> Query[DemandRow]:
    """`look` is how many jobs of each priority are looked at: no more are counted."""
    pools = json.dumps([asdict(one) for one in wants])
    return Query("queues/measure_demand", DemandRow, {"pools": pools, "look": look, "now": now})
