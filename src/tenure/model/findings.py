"""What a check found: a code for programs, a sentence for people, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from tenure.model.durations import format_duration

Severity = Literal["problem", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    text: str
    way_out: str
    severity: Severity = "problem"
    """A note is information only."""
    about: str = ""
    """What it concerns, if several findings can have the same code: a queue, a kind."""

    def __str__(self) -> str:
        return f"{self.text}; {self.way_out}"

    @property
    def line(self) -> str:
        """For people who read the row of a lease."""
        return f"{self.code}: {self}"


def span(seconds: float) -> str:
    """Exact to the second, to the minute from an hour on."""
    exact = max(1, round(seconds))
    return format_duration(timedelta(seconds=exact if exact < 3600 else exact // 60 * 60))


def counted(jobs: int, *, capped: bool = False) -> str:
    """`capped`: the statement stopped counting there."""
    exact = "1 job" if jobs == 1 else f"{jobs:,} jobs"
    return f"at least {exact}" if capped else exact


def some(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
