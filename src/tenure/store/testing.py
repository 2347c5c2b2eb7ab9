"""Statements for tests of users' code."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.query import INTEGER, TEXT, Query, Scalar, array_literal

_SECONDS = Scalar["float | None"]()


class EnqueuedJobRow(NamedTuple):
    id: UUID
    kind: str
    queue: str
    state: str
    priority: int
    key: str | None
    input: str
    """JSON, as `auth`, `meta` and `system`."""
    auth: str | None
    meta: str | None
    system: str | None
    run_at: datetime | None


def find_enqueued(kinds: Iterable[str] | None) -> Query[EnqueuedJobRow]:
    """None: of all kinds."""
    wanted = None if kinds is None else array_literal(list(kinds))
    return Query("testing/find_enqueued", EnqueuedJobRow, {"kinds": wanted})


def hasten_retries() -> Query[int]:
    return Query("testing/hasten_retries", INTEGER)


def find_next_wakeup() -> Query[float | None]:
    return Query("testing/find_next_wakeup", _SECONDS)


def lose_claim(job_id: str, claim_id: str) -> Query[str]:
    return Query("testing/lose_claim", TEXT, {"id": job_id, "claim_id": claim_id})
