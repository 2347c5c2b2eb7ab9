"""What supervisor and child send each other when a child starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenure.leader.declaring import Declarations
from tenure.leader.settings import LeaderSettings
from tenure.settings import DEFAULT_POOL, Settings
from tenure.store.target import DatabaseTarget

if TYPE_CHECKING:
    from tenure.model.event_bus import Events
    from tenure.model.kinds import Registry
    from tenure.worker.claim.claimer import Which


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """Sent by the supervisor: what to load and what to serve."""

    app: str
    """`module:attribute`"""
    folder: str
    """Put first on the import path, as `python -m` does."""
    flags: dict[str, Any]
    """Settings given on the command line."""
    queues: Sequence[str] | None = None
    capabilities: Sequence[str] = ()
    concurrency: int | None = None
    pool: str = DEFAULT_POOL
    """Its settings apply: `[workers.NAME]`."""
    without: Sequence[str] = ()
    """Queues that other pools serve. Applies if `queues` is not given."""
    jobs: Which = "healthy"
    name: str | None = None
    """The name of the supervisor's workers; None: each is called host:pid."""
    counts_runs: bool = False
    """Whether the child counts the runs that end, for metrics."""


@dataclass(frozen=True, kw_only=True)
class ChildHello:
    """Sent by the child: facts about the app, which the supervisor cannot know without running user code."""

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
    drain: float
    recycle_after_jobs: int
    recycle_after: float
    recycle_above_mb: int
    leader: LeaderSettings
    declared: Declarations
    renew: float = 0.0
    """Seconds between two renewals of the lease; 0: a third of it."""
    wants: Sequence[str] = ()
    """The events to which the app subscribes: the supervisor relays its own to the child."""
    app_version: str | None = None
    pid: int = 0

    @property
    def database(self) -> DatabaseTarget:
        return DatabaseTarget(dsn=self.dsn, schema=self.schema, pooled=self.pooled, listen_dsn=self.listen_dsn)

    @staticmethod
    def of(kinds: Registry, settings: Settings, spec: ChildSpec, events: Events | None = None) -> ChildHello:
        """`settings` are those of the pool."""
        from tenure.engine_settings import engine_settings, scope_of  # noqa: PLC0415 - the supervisor needs no engine

        database, workers = settings.database, settings.workers
        scope = scope_of(kinds, spec.queues or workers.queues, spec.capabilities or workers.capabilities, spec.jobs, spec.without)
        return ChildHello(
            dsn=database.dsn,
            schema=database.schema,
            pooled=database.pooled,
            listen_dsn=database.listen_dsn,
            queues=list(scope.queues),
            capabilities=list(scope.capabilities),
            kinds=kinds.served,
            concurrency=engine_settings(settings, spec.concurrency).concurrency,
            lease=workers.lease_timeout_seconds,
            grace=workers.grace_seconds,
            stall_limit=workers.stall_limit_seconds,
            drain=workers.drain_seconds,
            recycle_after_jobs=workers.recycle_after_jobs,
            recycle_after=workers.recycle_after_seconds,
            recycle_above_mb=workers.recycle_above_mb,
            leader=settings.leader,
            declared=Declarations.of(kinds, settings.name or (spec.app if ":" in spec.app else f"{spec.app}:app")),
            renew=workers.renew_every,
            wants=[] if events is None else events.wanted(),
            app_version=settings.app_version or None,
            pid=os.getpid(),
        )
