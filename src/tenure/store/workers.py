"""The statements about workers, as values."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple
from uuid import UUID

from tenure.model.errors import ConfigError
from tenure.store.json_columns import Json
from tenure.store.leases import Term, guard
from tenure.store.migration_files import newest_version
from tenure.store.query import ALL, BOOLEAN, TEXT, Pick, Query, array_literal
from tenure.version import __version__

Death = Literal["crashed", "stopped"]

MAX_CRASHES = 3
"""A job whose worker died this many times while running it is dead-lettered, instead of killing the next worker."""

SUSPECT_CRASHES = 2
"""A job that was in this many crashes runs alone in a process of its own. The statements have the same number."""


LONGEST_NAME = 200  # bytes

FIRST_JOB = str(UUID(int=0))


@dataclass(frozen=True, kw_only=True)
class Registration:
    id: str
    supervisor_id: str
    pid: int
    queues: Sequence[str]
    kinds: Sequence[str]
    capabilities: Sequence[str]
    concurrency: int
    version: str = __version__
    host: str = field(default_factory=socket.gethostname)
    name: str | None = None
    """As the operator named it; None: host:pid."""
    app_version: str | None = None
    """Of the app's own code; `version` is Tenure's."""


def default_name(pid: int | None = None, host: str | None = None) -> str:
    """Of a worker that was given none."""
    return f"{host or socket.gethostname()}:{pid or os.getpid()}"


def check_name(name: str) -> str:
    """Raises `ConfigError` for what cannot be the name of a worker."""
    if not name or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        raise ConfigError(f"{name[:50]!r} cannot be the name of a worker: give 1 to {LONGEST_NAME} bytes of printable text")
    return name


class RenewedRow(NamedTuple):
    renewed: list[str]
    """Ids."""
    suspects: bool
    """Jobs wait that must run alone."""
    free_in: float | None
    """Seconds until a duty may become free."""
    draining: bool
    """One of them claims no more jobs."""
    alike: str | None
    """JSON: by worker, how many living workers serve the same queues and kinds. None unless `counting`."""


class CondemnedRow(NamedTuple):
    """What was found and done about leases that ended."""

    holds: bool
    workers: int
    waiting: bool
    """Condemned workers still hold jobs, or have their rows."""
    next_end: float | None
    """Seconds until the next lease ends, of a worker or a job."""
    overdue: bool
    """The own lease of a job has ended."""
    peeked: Json[list[str]]
    """The ids of the workers that would be condemned."""


class UnknownWorkersRow(NamedTuple):
    holds: bool
    ids: list[str]
    """Workers that had no row and hold jobs."""
    next: str | None
    """The job after which to continue the search for jobs without a claim; None: start again."""

    @property
    def peeked(self) -> list[str]:
        return self.ids


class HeldCountRow(NamedTuple):
    pid: int
    jobs: int


class WorkerRow(NamedTuple):
    id: UUID
    supervisor_id: UUID
    host: str
    pid: int
    queues: Json[list[str]]
    kinds: Json[list[str]]
    capabilities: Json[list[str]]
    concurrency: int
    version: str
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    died_at: datetime | None
    died_how: str | None
    alive: bool
    held: int
    name: str
    draining_at: datetime | None
    memory_mb: float | None
    app_version: str | None


def register(worker: Registration, ttl: float, *, now: datetime | None = None) -> Query[None]:
    values = {
        "id": worker.id,
        "supervisor_id": worker.supervisor_id,
        "host": worker.host,
        "pid": worker.pid,
        "queues": json.dumps(list(worker.queues)),
        "kinds": json.dumps(list(worker.kinds)),
        "capabilities": json.dumps(list(worker.capabilities)),
        "concurrency": worker.concurrency,
        "version": worker.version,
        "app_version": worker.app_version,
        "name": worker.name or default_name(worker.pid, worker.host),
        "schema_version": newest_version(),
        "ttl": ttl,
        "now": now,
    }
    return Query("workers/register_worker", None, values)


def renew(
    ids: Iterable[str],
    queues: Iterable[str],
    ttl: float,
    *,
    counting: bool = False,
    memory: Mapping[str, float] = MappingProxyType({}),
    now: datetime | None = None,
) -> Query[RenewedRow]:
    """`memory`: megabytes by worker."""
    values = {
        "ids": array_literal(list(ids)),
        "queues": array_literal(list(queues)),
        "ttl": ttl,
        "counting": counting,
        "memory": json.dumps(dict(memory)),
        "now": now,
    }
    return Query("workers/renew_workers", RenewedRow, values)


def extend(ids: Iterable[str], ttl: float, *, now: datetime | None = None) -> Query[str]:
    """Returns the ids of those renewed."""
    return Query("workers/extend_leases", TEXT, {"ids": array_literal(list(ids)), "ttl": ttl, "now": now})


def drain(ids: Iterable[str], *, draining: bool) -> Query[str]:
    """Returns the ids of all workers of the same supervisors."""
    return Query("workers/drain_workers", TEXT, {"ids": array_literal(list(ids)), "draining": draining})


def condemn(worker_id: str, supervisor_id: str, how: Death, *, now: datetime | None = None) -> Query[None]:
    return Query("workers/condemn_worker", None, {"id": worker_id, "supervisor_id": supervisor_id, "how": how, "now": now})


def condemn_expired(term: Term, *, reap: bool, pick: Pick = ALL, now: datetime | None = None) -> Query[CondemnedRow]:
    values = {**guard(term), "reap": reap, "now": now, **pick.unlimited()}
    return Query("workers/condemn_workers", CondemnedRow, values)


def condemn_unknown(term: Term, *, after: str | None = None, look: int = 20_000, pick: Pick = ALL) -> Query[UnknownWorkersRow]:
    """`look`: how many jobs are examined for a claim that does not exist, from the job `after`."""
    values = {**guard(term), "after": after or FIRST_JOB, "look": look, **pick.unlimited()}
    return Query("workers/condemn_unknown", UnknownWorkersRow, values)


def find_condemned(*, limit: int) -> Query[str]:
    """Returns ids."""
    return Query("workers/find_condemned", TEXT, {"limit": limit})


def count_held() -> Query[HeldCountRow]:
    return Query("workers/count_held", HeldCountRow)


def find_all() -> Query[WorkerRow]:
    return Query("workers/find_workers", WorkerRow)


def end_session(pid: int, age: float) -> Query[bool]:
    return Query("workers/end_session", BOOLEAN, {"pid": pid, "age": age})
