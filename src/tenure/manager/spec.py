"""What supervisor and child tell each other when a child starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tenure.inprocess import engine_settings, scope_of
from tenure.leader.declaring import Declarations
from tenure.model.kinds import Registry
from tenure.settings import Settings
from tenure.store.place import Place
from tenure.worker.claimer import Which


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """From the supervisor: what to load and what to serve."""

    app: str
    """`module:attribute`"""
    folder: str
    """Goes first on the import path, as `python -m` does."""
    flags: dict[str, Any]
    """Settings given on the command line."""
    queues: Sequence[str] | None = None
    capabilities: Sequence[str] = ()
    concurrency: int | None = None
    jobs: Which = "healthy"

    def to_message(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_message(message: dict[str, Any]) -> ChildSpec:
        return ChildSpec(**message)


@dataclass(frozen=True, kw_only=True)
class Hello:
    """From the child: what the app says, which the supervisor cannot know without running user code."""

    dsn: str
    schema: str
    pooled: bool
    listen_dsn: str | None
    queues: Sequence[str]
    capabilities: Sequence[str]
    kinds: Sequence[str]
    concurrency: int
    lease: float
    grace: float
    stall_limit: float
    leader: dict[str, Any]
    """LeaderSettings."""
    declared: dict[str, Any]
    """Declarations."""

    @property
    def place(self) -> Place:
        return Place(dsn=self.dsn, schema=self.schema, pooled=self.pooled, listen_dsn=self.listen_dsn)

    @staticmethod
    def of(kinds: Registry, settings: Settings, spec: ChildSpec) -> Hello:
        place = settings.place
        scope = scope_of(kinds, spec.queues, spec.capabilities, spec.jobs)
        return Hello(
            dsn=place.dsn,
            schema=place.schema,
            pooled=place.pooled,
            listen_dsn=place.listen_dsn,
            queues=list(scope.queues),
            capabilities=list(scope.capabilities),
            kinds=list(kinds),
            concurrency=engine_settings(settings, spec.concurrency).concurrency,
            lease=settings.workers.lease_timeout_seconds,
            grace=settings.workers.grace_seconds,
            stall_limit=settings.workers.stall_limit_seconds,
            leader=asdict(settings.leader),
            declared=asdict(Declarations.of(kinds, settings.name or (spec.app if ":" in spec.app else f"{spec.app}:app"))),
        )

    def to_message(self) -> dict[str, Any]:
        return asdict(self)
