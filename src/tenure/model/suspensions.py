"""What a workflow waits for while it holds no slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStep:
    """A step that has not ended: a sleep, a wait, or a try that is to be repeated."""

    number: int
    name: str
    what: str
    state: str = "open"
    output: Any = None
    error: str | None = None
    attempts: int = 1
    seconds: float | None = None
    """Until it ends, counted from the suspension."""
    until: str | None = None
    """The time of its end, in ISO 8601, if that is known already. Neither: only what it waits for ends it."""

    @property
    def ends(self) -> bool:
        return self.seconds is not None or self.until is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWait:
    step: str
    event: str
    key: str
    after: int | None = None
    """For streams: the position of the last event that was delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainWait:
    """A child whose chain has not ended."""

    id: str
    number: int
    """Below 0: the numbers above belong to the chains that the job was enqueued behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    steps: Sequence[OpenStep] = ()
    waits: Sequence[EventWait] = ()
    chains: Sequence[ChainWait] = ()
    missing: int = 1
    """How many of these chains must end before the workflow runs again."""
    held: str | None = None
    """Why the workflow cannot continue before a person has decided."""

    @property
    def ends(self) -> bool:
        """It becomes due by time."""
        return self.held is None and any(step.ends for step in self.steps)

    def to_fields(self) -> dict[str, Any]:
        """JSON values, for the statement that suspends the workflow."""
        return {
            "steps": [_without_none(step) for step in self.steps],
            "waits": [_without_none(wait) for wait in self.waits],
            "chains": [_without_none(chain) for chain in self.chains],
            "missing": min(self.missing, len(self.chains)),
            "held": self.held,
        }


def _without_none(value: OpenStep | EventWait | ChainWait) -> dict[str, Any]:
    return {name: field for name, field in asdict(value).items() if field is not None}


def undo_key(key: str) -> str:
    """The name under which an undo is recorded, from that of its registration."""
    return f"(undo) {key}"
