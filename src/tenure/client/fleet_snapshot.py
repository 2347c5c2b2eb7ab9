"""Queues, workers and leaders at one moment, with the rate at which jobs finish. `tenure top` shows this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tenure.client.rate_meter import RateMeter
from tenure.model.states import FINISHED, HELD, State

if TYPE_CHECKING:
    from tenure.client.client import Client
    from tenure.client.overview import LeaderStatus, QueueStatus, WorkerStatus

ENDED = (*FINISHED, State.DEAD_LETTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    name: str
    paused: bool
    pending: int
    running: int
    scheduled: int
    retry: int
    dead: int
    oldest_seconds: float | None
    """The age of the oldest pending job."""
    rate: float
    """Jobs that finished or were dead-lettered, per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    at: datetime
    queues: list[QueueSnapshot]
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


class FleetSampler:
    """Takes snapshots. Rates are computed from consecutive ones, so the first has none."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._rates: dict[str, RateMeter] = {}

    async def sample(self) -> FleetSnapshot:
        queues = await self._client.queues()
        workers, leaders = await self._client.workers(), await self._client.leaders()
        now = datetime.now(UTC)
        snapshots = [self._queue(queue, now) for queue in queues]
        totals = {
            "pending": sum(queue.pending for queue in snapshots),
            "running": sum(queue.running for queue in snapshots),
            "slots": sum(worker.concurrency for worker in workers if worker.alive),
            "rate": sum(queue.rate for queue in snapshots),
        }
        return FleetSnapshot(at=now, queues=snapshots, workers=workers, leaders=leaders, totals=totals)

    def _queue(self, queue: QueueStatus, now: datetime) -> QueueSnapshot:
        live, oldest = queue.live, queue.oldest_pending_at
        ended = sum(queue.finished.get(state, 0) for state in ENDED)
        return QueueSnapshot(
            name=queue.name,
            paused=queue.paused,
            pending=live.get(State.PENDING, 0),
            running=sum(live.get(state, 0) for state in HELD),
            scheduled=live.get(State.SCHEDULED, 0),
            retry=live.get(State.RETRY, 0),
            dead=live.get(State.DEAD_LETTER, 0),
            oldest_seconds=None if oldest is None else max(0.0, (now - oldest).total_seconds()),
            rate=max(0.0, self._rates.setdefault(queue.name, RateMeter()).update(ended)),
        )
