"""Groups failed jobs by kind, error and message without its numbers and ids: what has one cause becomes one line. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tenure.model.failures import Failure
from tenure.model.states import State
from tenure.store.failures import FailureRow
from tenure.web.security.redaction import KnownSecrets

STEPS = 48
"""In which the trend of a group is counted."""

LONGEST_MESSAGE = 200
MOST_FIELDS, MOST_SHARED = 40, 3

_VARYING = re.compile(
    r"""
    [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}   # a UUID
    | \b0x[0-9a-f]+\b | \b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\b         # addresses, hashes
    | [0-9]+(?:[.,:][0-9]+)*                                       # numbers, times, versions
    | (?<=')[^'\s]{16,}(?=')                                        # long quoted words
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    id: str
    kind: str
    error: str | None
    """The type of the exception. None: the handler returned `Fail`, or the job was quarantined."""
    message: str
    """Without what differs between its jobs."""
    sample: str
    """The message of the newest one."""
    queues: list[str]
    states: dict[str, int]
    first: datetime
    last: datetime
    trend: list[int]
    """Jobs in each step of the period."""
    newest: list[UUID]
    """Newest first."""
    ids: list[UUID]

    def without(self, secrets: KnownSecrets) -> FailureGroup:
        """Of which the messages are free of these, and then cut: the beginning of a secret would not be found."""
        message, sample = secrets.changed(_starred).hide(secrets.hide(self.message)), secrets.hide(self.sample)
        return replace(self, message=message[:LONGEST_MESSAGE], sample=sample[:LONGEST_MESSAGE])

    @property
    def jobs(self) -> int:
        return len(self.ids)

    @property
    def rise(self) -> float:
        """How much more failed in the last quarter of the period than was usual before, in jobs per step."""
        recent = self.trend[-STEPS // 8 :]
        before = self.trend[: -STEPS // 8]
        return sum(recent) / len(recent) - sum(before) / len(before)


@dataclass(frozen=True, slots=True)
class FailedJobs:
    groups: list[FailureGroup]
    capped: bool
    """There are more than were looked at."""


def group_failures(rows: Iterable[FailureRow], until: datetime, seconds: float) -> list[FailureGroup]:
    """The fastest rising group first."""
    found: dict[tuple[str, str | None, str], list[tuple[FailureRow, str]]] = {}
    for row in rows:
        failure = Failure.read(row.error or "", is_reason=row.state == State.FAILED)
        message = " ".join(failure.message.split())
        key = row.kind, failure.type, _starred(message)[:LONGEST_MESSAGE]
        found.setdefault(key, []).append((row, message))
    groups = [_group(key, members, until, seconds) for key, members in found.items()]
    return sorted(groups, key=lambda group: (-group.rise, -group.last.timestamp()))


def _starred(text: str) -> str:
    return _VARYING.sub("*", text)


def _group(
    key: tuple[str, str | None, str], members: Sequence[tuple[FailureRow, str]], until: datetime, seconds: float
) -> FailureGroup:
    kind, error, message = key
    members = sorted(members, key=lambda member: member[0].at, reverse=True)
    rows = [row for row, _ in members]
    since = until - timedelta(seconds=seconds)
    trend = [0] * STEPS
    for row in rows:
        step = int((row.at - since).total_seconds() / seconds * STEPS)
        trend[min(STEPS - 1, max(0, step))] += 1
    return FailureGroup(
        id=hashlib.sha256("\0".join((kind, error or "", message)).encode("utf-8", "replace")).hexdigest()[:16],
        kind=kind,
        error=error,
        message=_starred(members[0][1]),
        sample=members[0][1],
        queues=sorted({row.queue for row in rows}),
        states=dict(Counter(row.state for row in rows)),
        first=rows[-1].at,
        last=rows[0].at,
        trend=trend,
        newest=[row.id for row in rows[:5]],
        ids=[row.id for row in rows],
    )


@dataclass(frozen=True, slots=True)
class SharedInput:
    """A value that many jobs of a group have in common."""

    field: str
    value: Any
    jobs: int


def shared_values(inputs: Sequence[Any]) -> list[SharedInput]:
    """The fields of the input that have the same value in most of these jobs, the most common first."""
    counts: dict[str, Counter[Any]] = {}
    for given in inputs:
        for name, value in list(given.items())[:MOST_FIELDS] if isinstance(given, dict) else ():
            if isinstance(value, str | int | bool):
                counts.setdefault(str(name), Counter())[value] += 1
    common = [SharedInput(name, *counter.most_common(1)[0]) for name, counter in counts.items()]
    enough = [one for one in common if one.jobs * 2 > len(inputs)]
    return sorted(enough, key=lambda one: (-one.jobs, one.field))[:MOST_SHARED]
