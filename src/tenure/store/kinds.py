"""The statements about kinds that workers have declared, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tenure.store.query import Query


class KindRow(NamedTuple):
    name: str
    app: str
    declared_at: datetime
    definition: str
    """JSON, see `PublishedKind`."""
    workers: int
    """How many living workers run it."""


def declare(app: str, kinds: Mapping[str, Mapping[str, Any]]) -> Query[None]:
    """The definitions by name."""
    given = json.dumps([{"name": name, "definition": definition} for name, definition in kinds.items()])
    return Query("kinds/declare_kinds", None, {"app": app, "kinds": given})


def find_all() -> Query[KindRow]:
    return Query("kinds/find_kinds", KindRow)


def find(name: str) -> Query[KindRow]:
    return Query("kinds/find_kind", KindRow, {"name": name})
