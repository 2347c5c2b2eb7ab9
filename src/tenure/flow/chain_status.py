"""A chain at the time of the query."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.store.blockers import BlockerRow, DependentJobRow


@dataclass(frozen=True, slots=True)
class Blocker:
    """A chain that a link waits for, or has waited for."""

    chain_id: UUID
    ended: bool
    kind: str | None
    """Of its last link, once it has ended."""
    state: str | None
    """How it ended: completed, failed, canceled, dead_letter or deleted. None: it has not."""

    @staticmethod
    def from_row(row: BlockerRow) -> Blocker:
        return Blocker(row.chain_id, row.ended, row.kind, row.state)

    def to_json(self) -> dict[str, Any]:
        return {"chain_id": str(self.chain_id), "ended": self.ended, "kind": self.kind, "state": self.state}


@dataclass(frozen=True, slots=True)
class Dependant:
    """A job that waits for a chain, or has waited for it: the group of a member, the workflow of a child, others by `after=`."""

    id: UUID
    kind: str
    queue: str
    state: State

    @staticmethod
    def from_row(row: DependentJobRow) -> Dependant:
        return Dependant(row.id, row.kind, row.queue, State(row.state))

    def to_json(self) -> dict[str, Any]:
        return {"id": str(self.id), "kind": self.kind, "state": self.state.value}


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A job of a chain."""

    number: int
    """From 1."""
    job: JobStatus
    blockers: list[Blocker] = field(default_factory=list)
    """What it waits for, or has waited for; at most 100."""

    def to_json(self) -> dict[str, Any]:
        return {"number": self.number, "job": self.job.to_json(), "blockers": [one.to_json() for one in self.blockers]}


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain at the time of the query: jobs of which each was created by the one before it."""

    id: UUID
    links: list[ChainLink]
    """In their order. Of a long chain the last 1,000; links that are older than the retention are missing."""
    dependants: list[Dependant] = field(default_factory=list)
    """What waits for its end, or has waited for it; at most 100."""

    @property
    def last(self) -> JobStatus:
        return self.links[-1].job

    @property
    def kind(self) -> str:
        """Of its first link; of the first one that is kept, if the chain is longer than its history."""
        return self.links[0].job.kind

    @property
    def state(self) -> State:
        """That of its last link."""
        return self.last.state

    @property
    def output(self) -> Any:
        """Of its last link, as plain JSON values. None: it has none, or the chain has not completed."""
        return self.last.output

    @property
    def error(self) -> str | None:
        return self.last.error

    @property
    def enqueued_at(self) -> datetime:
        return self.links[0].job.enqueued_at

    @property
    def finished_at(self) -> datetime | None:
        return self.last.finished_at

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "id": str(self.id), "kind": self.kind, "state": self.state.value, "output": self.output, "error": self.error,
            "enqueued_at": self.enqueued_at.isoformat(),
            "finished_at": None if self.finished_at is None else self.finished_at.isoformat(),
            "links": [link.to_json() for link in self.links],
            "dependants": [one.to_json() for one in self.dependants],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChainSummary:
    """A chain in a list."""

    id: UUID
    kind: str
    """Of its first link."""
    state: State
    """Of its last link."""
    links: int
    """How many there are, without those that are older than the retention."""
    last_kind: str
    last_id: UUID
    enqueued_at: datetime
    finished_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id), "kind": self.kind, "state": self.state.value, "links": self.links,
            "last_kind": self.last_kind, "last_id": str(self.last_id), "enqueued_at": self.enqueued_at.isoformat(),
            "finished_at": None if self.finished_at is None else self.finished_at.isoformat(),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChainPage:
    chains: list[ChainSummary]
    next: str | None
    """Pass it as `after` for the next page. A short or even empty page can have a next one."""
