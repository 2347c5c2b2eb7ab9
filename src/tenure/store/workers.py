"""The statements about workers, as values."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from tenure.model.errors import ConfigError
from tenure.store.migration_files import newest_version
from tenure.store.query import ALL, Pick, Query, array_literal
from tenure.version import __version__

Death = Literal["crashed", "stopped"]

MAX_CRASHES = 3
"""A job whose worker died so many times while running it is set aside instead of killing the next one."""


LONGEST_NAME = 200  # bytes


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


def default_name(pid: int | None = None, host: str | None = None) -> str:
    """Of a worker that was given none."""
    return f"{host or socket.gethostname()}:{pid or os.getpid()}"


def check_name(name: str) -> str:
    """Raises `ConfigError` for what cannot be the name of a worker."""
    if not name or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        raise ConfigError(f"{name[:50]!r} cannot be the name of a worker: give 1 to {LONGEST_NAME} bytes of printable text")
    return name


def register(worker: Registration, ttl: float, *, now: datetime | None = None) -> Query:
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
        "name": worker.name or default_name(worker.pid, worker.host),
        "schema_version": newest_version(),
        "ttl": ttl,
        "now": now,
    }
    return Query("workers/register_worker", values)


def renew(ids: Iterable[str], queues: Iterable[str], ttl: float, *, counting: bool = False, now: datetime | None = None) -> Query:
    """Gives (ids renewed, whether suspects wait, seconds until a duty may be free, JSON of how many serve the same as each)."""
    values = {
        "ids": array_literal(list(ids)),
        "queues": array_literal(list(queues)),
        "ttl": ttl,
        "counting": counting,
        "now": now,
    }
    return Query("workers/renew_workers", values)


def extend(ids: Iterable[str], ttl: float, *, now: datetime | None = None) -> Query:
    """Gives the ids renewed."""
    return Query("workers/extend_leases", {"ids": array_literal(list(ids)), "ttl": ttl, "now": now})


def condemn(worker_id: str, supervisor_id: str, how: Death, *, now: datetime | None = None) -> Query:
    return Query("workers/condemn_worker", {"id": worker_id, "supervisor_id": supervisor_id, "how": how, "now": now})


def return_jobs(worker_id: str | None, *, limit: int = 500, pick: Pick = ALL) -> Query:
    """Gives (requeued, quarantined, whether there may be more, queues, the jobs as JSON)."""
    values = {"worker_id": worker_id, "max_crashes": MAX_CRASHES, **pick.values(limit)}
    return Query("jobs/return_jobs", values)


def find_condemned(*, limit: int) -> Query:
    return Query("workers/find_condemned", {"limit": limit})


def count_held() -> Query:
    return Query("workers/count_held")


def end_session(pid: int, age: float) -> Query:
    return Query("workers/end_session", {"pid": pid, "age": age})
