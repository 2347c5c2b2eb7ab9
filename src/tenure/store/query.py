"""A statement with its values: what to run, apart from where it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    """The file below `sql/`, without its ending."""
    values: Mapping[str, Any] = field(default_factory=dict)


def array_literal(items: list[str] | tuple[str, ...]) -> str:
    """A text[] literal. The driver's own list adaptation costs more than the whole statement."""
    return "{" + ",".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items) + "}"
