"""What an enqueue gives back: the job's id, and the way to ask about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from tenure.client.portal import Portal
from tenure.model.errors import TenureError
from tenure.model.states import State
from tenure.store import jobs

if TYPE_CHECKING:
    from tenure.client.session import Session

R_co = TypeVar("R_co", covariant=True)


class JobNotFound(TenureError):  # noqa: N818 - reads as the fact it states
    def __init__(self, job_id: UUID) -> None:
        self.job_id = job_id
        super().__init__(f"there is no job {job_id}: it was deleted, or its retention is over")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job as it stood when it was asked for."""

    id: UUID
    kind: str
    queue: str
    state: State
    priority: int
    capability: str | None
    attempt: int
    max_attempts: int
    crashes: int
    fence: int
    worker_id: UUID | None
    enqueued_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    input: str
    """The JSON text as it is kept."""
    output: str | None


@dataclass(frozen=True, slots=True)
class Door:
    """The way to the store: a session in a running loop, the portal for everyone else."""

    session: Callable[[], Session]
    portal: Portal


class Handle(Generic[R_co]):
    """A job that was accepted."""

    __slots__ = ("_door", "id", "kind")

    def __init__(self, job_id: UUID, kind: str, door: Door) -> None:
        self.id = job_id
        self.kind = kind
        self._door = door

    async def status(self) -> JobStatus:
        rows = await self._door.session().fetch(jobs.find(str(self.id)))
        if not rows:
            raise JobNotFound(self.id)
        return _status(rows[0])

    def status_sync(self) -> JobStatus:
        return self._door.portal.run(self.status())

    def __repr__(self) -> str:
        return f"Handle({self.kind!r}, {self.id})"


def _status(row: tuple[Any, ...]) -> JobStatus:
    names = JobStatus.__slots__
    return JobStatus(**dict(zip(names, row, strict=True)) | {"state": State(row[3])})
