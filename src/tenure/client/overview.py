"""Queues, workers, leaders and counts, at the time of the query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from tenure.model.findings import Finding
from tenure.model.states import FINISHED, State
from tenure.store.leases import LeaderRow
from tenure.store.queues import QueueRow
from tenure.store.reports import LiveCountRow
from tenure.store.workers import WorkerRow

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A process that runs handlers."""

    id: UUID
    supervisor_id: UUID
    host: str
    pid: int
    queues: list[str]
    kinds: list[str]
    capabilities: list[str]
    concurrency: int
    version: str
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    died_at: datetime | None
    died_how: str | None
    alive: bool
    """Its lease has not expired."""
    held: int
    """How many jobs it runs."""
    name: str = ""
    """The name it was given, else host:pid."""
    draining_at: datetime | None = None
    """Since then it claims no more jobs."""
    memory_mb: float | None = None
    """Resident memory at its last heartbeat. None: not measured."""
    app_version: str | None = None
    """The version of the app's code that it runs, as the setting `app_version` gives it. `version` is Tenure's."""

    @property
    def state(self) -> str:
        """alive; draining: claims no more jobs, and still runs some; drained: runs none; late: its lease has expired; how it
        ended."""
        if not self.alive:
            return self.died_how or "late"
        return "alive" if self.draining_at is None else "draining" if self.held else "drained"

    @staticmethod
    def from_row(row: WorkerRow) -> WorkerStatus:
        return WorkerStatus(**row._asdict())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderStatus:
    """A cluster-wide singleton duty, or a lease of your own (`lease:NAME`), and its holder."""

    duty: str
    holder: UUID
    term: int
    acquired_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    metadata: dict[str, Any]
    holds: bool
    """The lease has not expired. If it has, the duty waits for another holder."""
    stuck: bool
    """The lease is renewed, but the next round of the duty is long overdue."""
    findings: list[Finding] = field(default_factory=list)
    """Of its last round: what the doctor found, and what the cleaner cannot remove."""

    @property
    def state(self) -> str:
        return "stuck" if self.stuck else "holds" if self.holds else "expired" if self.is_duty else "free"

    @property
    def is_duty(self) -> bool:
        """A process should hold it at all times."""
        return not self.duty.startswith("lease:")

    @property
    def shared(self) -> bool:
        """Every supervisor does this duty (leader strategy `shared`); the id of its holder is zero."""
        return self.is_duty and not self.holder.int

    @staticmethod
    def from_row(row: LeaderRow) -> LeaderStatus:
        return LeaderStatus(**row._asdict())


@dataclass(frozen=True, slots=True)
class LiveCount:
    queue: str
    kind: str
    state: State
    jobs: int
    oldest_at: datetime
    """When the first of them was enqueued."""


@dataclass(frozen=True, slots=True)
class FinishedCount:
    queue: str
    kind: str
    what: str
    """completed, failed or canceled; or retry and dead_letter, for attempts that ended that way."""
    jobs: int
    waited: float
    """Seconds from enqueue to start, of all of them together."""
    ran: float

    @property
    def average_wait(self) -> float | None:
        return self.waited / self.jobs if self.jobs and self.what in FINISHED else None

    @property
    def average_run(self) -> float | None:
        return self.ran / self.jobs if self.jobs and self.what in FINISHED else None


@dataclass(frozen=True, slots=True)
class Stats:
    """Live jobs, and what was finished in the hours that are still counted (90 days)."""

    live: list[LiveCount]
    finished: list[FinishedCount]

    @property
    def by_state(self) -> dict[State, int]:
        return _summed((count.state, count.jobs) for count in self.live)

    @property
    def by_outcome(self) -> dict[str, int]:
        return _summed((count.what, count.jobs) for count in self.finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    name: str
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    live: dict[State, int] = field(default_factory=dict)
    """The number of its jobs in each state."""
    oldest_pending_at: datetime | None = None
    finished: dict[str, int] = field(default_factory=dict)
    """The number of attempts and jobs by outcome; see `FinishedCount.what`."""

    @property
    def paused(self) -> bool:
        return self.paused_at is not None


def live_count(row: LiveCountRow) -> LiveCount:
    return LiveCount(row.queue, row.kind, State(row.state), row.jobs, row.oldest_at)


def queue_statuses(pauses: Iterable[QueueRow], stats: Stats) -> list[QueueStatus]:
    """Every known queue, by name."""
    paused = {row.name: row for row in pauses}
    names = paused.keys() | {count.queue for count in stats.live} | {count.queue for count in stats.finished}
    return [_queue(name, paused.get(name, QueueRow(name, None, None, None)), stats) for name in sorted(names)]


def _queue(name: str, pause: QueueRow, stats: Stats) -> QueueStatus:
    live = [count for count in stats.live if count.queue == name]
    pending = [count.oldest_at for count in live if count.state == State.PENDING]
    return QueueStatus(
        name=name,
        paused_at=pause.paused_at,
        paused_by=pause.paused_by,
        pause_reason=pause.pause_reason,
        live=_summed((count.state, count.jobs) for count in live),
        oldest_pending_at=min(pending, default=None),
        finished=_summed((count.what, count.jobs) for count in stats.finished if count.queue == name),
    )


def _summed(pairs: Iterable[tuple[Name, int]]) -> dict[Name, int]:
    sums: dict[Name, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    return sums
