"""The statements about the audit log of the web API, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from tenure.store.query import Query

Phase = Literal["requested", "finished"]
AuditSource = Literal["dashboard", "api", "tracker", "cli"]
"""What a call was made with. "cli": a token was created or revoked on the command line."""

NEWEST = 2**63 - 1
"""Beyond every entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A call that changes something, before it is carried out or afterwards."""

    request_id: str
    phase: Phase
    actor: str
    ip: str | None
    source: AuditSource
    action: str
    subject: str | None = None
    request: Any = None
    before: Any = None
    after: Any = None
    status: int | None = None


class AuditRow(NamedTuple):
    id: int
    at: datetime
    request_id: UUID
    phase: Phase
    actor: str
    ip: str | None
    action: str
    subject: str | None
    request: str | None
    """JSON, as are `before` and `after`."""
    before: str | None
    after: str | None
    status: int | None
    source: str


def write(entries: Iterable[AuditEntry]) -> Query[None]:
    return Query("audit/write_audit", None, {"entries": json.dumps([_json(entry) for entry in entries])})


def list_all(*, before: int, limit: int) -> Query[AuditRow]:
    return Query("audit/list_audit", AuditRow, {"before": before, "limit": limit})


_NAMES = [field.name for field in fields(AuditEntry)]


def _json(entry: AuditEntry) -> dict[str, Any]:
    """Shallow: `asdict` would copy every value."""
    return {name: value for name in _NAMES if (value := getattr(entry, name)) is not None}
