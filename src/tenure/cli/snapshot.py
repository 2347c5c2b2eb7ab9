"""What `tenure top` shows: the fleet and its work at one moment, and how fast that moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from tenure.cli.pace import Pace
from tenure.client.client import Client
from tenure.client.overview import LeaderStatus, QueueStatus, WorkerStatus
from tenure.model.states import FINISHED, HELD, State

ENDED = (*FINISHED, State.DEAD_LETTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    name: str
    paused: bool
    pending: int
    running: int
    scheduled: int
    retry: int
    dead: int
    oldest_seconds: float | None
    """For how long the oldest pending job has been there."""
    rate: float
    """Jobs that ended, a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    at: datetime
    queues: list[QueueLine]
    workers: list[WorkerStatus]
    leaders: list[LeaderStatus]
    totals: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(),
            "queues": [asdict(queue) for queue in self.queues],
            "workers": self.workers,
            "leaders": self.leaders,
            "totals": dict(self.totals),
        }


class Observer:
    """Takes one snapshot after another: rates need two of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._paces: dict[str, Pace] = {}

    async def look(self) -> Snapshot:
        queues = await self._client.queues()
        workers, leaders = await self._client.workers(), await self._client.leaders()
        now = datetime.now(UTC)
        lines = [self._line(queue, now) for queue in queues]
        alive = [worker for worker in workers if worker.alive]
        totals = {
            "pending": sum(line.pending for line in lines),
            "running": sum(line.running for line in lines),
            "slots": sum(worker.concurrency for worker in alive),
            "rate": sum(line.rate for line in lines),
        }
        return Snapshot(at=now, queues=lines, workers=workers, leaders=leaders, totals=totals)

    def _line(self, queue: QueueStatus, now: datetime) -> QueueLine:
        live, oldest = queue.live, queue.oldest_pending_at
        ended = sum(queue.finished.get(state, 0) for state in ENDED)
        return QueueLine(
            name=queue.name,
            paused=queue.paused,
            pending=live.get(State.PENDING, 0),
            running=sum(live.get(state, 0) for state in HELD),
            scheduled=live.get(State.SCHEDULED, 0),
            retry=live.get(State.RETRY, 0),
            dead=live.get(State.DEAD_LETTER, 0),
            oldest_seconds=None if oldest is None else max(0.0, (now - oldest).total_seconds()),
            rate=max(0.0, self._paces.setdefault(queue.name, Pace()).mark(ended)),
        )
