"""What Tenure itself notes about a job, in its `system` column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from tenure.model.headers import NO_HEADERS, Headers
from tenure.model.payloads import Json


@dataclass(frozen=True, slots=True)
class PlannedTime:
    schedule: str
    at: datetime
    late: bool
    """Enqueued more than a minute after it."""


class SystemData(NamedTuple):
    """Any SQL can have written the column, so members of other types count as absent."""

    planned: PlannedTime | None = None
    """None for a job without a schedule."""
    retry_of: str | None = None
    """The id of the finished job that this one repeats."""
    forked: str | None = None
    """The id of the workflow whose steps this one has begun with."""
    link: int | None = None
    """Its number in its chain. None for the first one."""
    blockers: int = 0
    """How many chains it was enqueued behind."""
    signals: Mapping[str, int] = MappingProxyType({})
    """By name: the position of the last signal that an earlier link of the chain has received."""
    held: str | None = None
    """Why the workflow cannot continue before a person has decided."""
    canceling: str | None = None
    """Why the workflow is to be rolled back."""
    headers: Headers = NO_HEADERS
    """What the hooks around its enqueue have added, such as the context of a trace."""

    @staticmethod
    def of(value: Any) -> SystemData:
        """From the JSON value of the column."""
        if not value or not isinstance(value, dict):
            return NO_SYSTEM_DATA
        blockers, link, signals = value.get("blockers"), value.get("link"), value.get("signals")
        return SystemData(
            planned=_planned_time(value.get("schedule")),
            retry_of=_text(value.get("retry_of")),
            forked=_text(value.get("forked")),
            link=link if isinstance(link, int) else None,
            blockers=blockers if isinstance(blockers, int) else 0,
            signals=signals if isinstance(signals, dict) else {},
            held=_text(value.get("held")),
            canceling=_text(value.get("canceling")),
            headers=_texts(value.get("headers")),
        )

    @staticmethod
    def parse(text: Json | None) -> SystemData:
        """From the text of the column. Most jobs have none."""
        return NO_SYSTEM_DATA if text is None else SystemData.of(json.loads(text))


NO_SYSTEM_DATA = SystemData()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> Headers:
    """The members of an object that are texts."""
    if not isinstance(value, dict):
        return NO_HEADERS
    return Headers({name: text for name, text in value.items() if isinstance(text, str)})


def _planned_time(value: Any) -> PlannedTime | None:
    match value:
        case {"name": str(name), "for": str(at), "late": bool(late)}:
            try:
                return PlannedTime(name, datetime.fromisoformat(at), late)
            except ValueError:
                return None
    return None
