"""A statement with its values: what to run, apart from where it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.store.statements import PASSING_OVER


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    """The file below `sql/`, without its ending."""
    values: Mapping[str, Any] = field(default_factory=dict)

    def passing_over(self, refused: str, *, only: tuple[str, ...] | None = None, peek: bool = False) -> Query:
        """The same claim without the jobs in `refused`, a uuid[] literal. `only`: restricted to these jobs; `peek`: claim
        nothing, return the jobs that would be claimed."""
        more = {"refused": refused, "only": None if only is None else array_literal(only), "peek": peek}
        return Query(self.name + PASSING_OVER, {**self.values, **more})


def array_literal(items: list[str] | tuple[str, ...]) -> str:
    """A text[] literal. The driver's own list adaptation costs more than the whole statement."""
    return "{" + ",".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items) + "}"


@dataclass(frozen=True, slots=True)
class Pick:
    """Which rows a batch statement takes."""

    only: tuple[str, ...] | None = None
    """None: any."""
    peek: bool = False
    """Change nothing, return which rows would be taken."""
    more: int = 0
    """Look at this many rows beyond the batch: known rows that will be left out."""

    def values(self, limit: int) -> dict[str, object]:
        return {"limit": limit + self.more, **self.unlimited()}

    def unlimited(self) -> dict[str, object]:
        """For a statement that takes all rows at once."""
        return {"only": None if self.only is None else array_literal(self.only), "peek": self.peek}


ALL = Pick()
