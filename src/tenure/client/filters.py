"""The filters of lists, cancellations and replays, checked before any statement is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack
from uuid import UUID

from tenure.model.errors import ConfigError, InvalidJobId
from tenure.model.options import check_option
from tenure.model.payloads import plain_json
from tenure.model.priorities import to_priority
from tenure.model.states import State
from tenure.store.query import array_literal

FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)

EARLY, LATE = timedelta(hours=1), timedelta(minutes=1)
"""How far the time in a job's id may differ from the time at which it was enqueued: a call may be made long before it is sent,
and clocks differ. Filters by time widen their range by this much."""


class FilterWords(TypedDict, total=False):
    state: State | str | Sequence[State | str] | None
    kind: str | None
    queue: str | None
    priority: int | str | None
    capability: str | None
    key: str | None
    parent: UUID | str | None
    enqueued_after: datetime | None
    enqueued_before: datetime | None
    input: Mapping[str, Any] | None
    """Contained in the job's input, as defined by PostgreSQL's `@>`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    states: frozenset[State] | None = None
    kind: str | None = None
    queue: str | None = None
    priority: int | None = None
    capability: str | None = None
    key: str | None = None
    parent: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    input: str | None = None

    @staticmethod
    def of(**words: Unpack[FilterWords]) -> Filters:
        """Raises `ConfigError` for an invalid filter."""
        if unknown := sorted(set(words) - set(FilterWords.__annotations__)):
            raise ConfigError(_unknown("filter", unknown[0], list(FilterWords.__annotations__)))
        state, parent, given = words.get("state"), words.get("parent"), words.get("input")
        priority = words.get("priority")
        return Filters(
            states=None if state is None else check_option("state", to_states, state),
            kind=_text("kind", words.get("kind")),
            queue=_text("queue", words.get("queue")),
            priority=None if priority is None else check_option("priority", to_priority, priority),
            capability=_text("capability", words.get("capability")),
            key=_text("key", words.get("key")),
            parent=None if parent is None else check_option("parent", _parent, parent),
            since=_time("enqueued_after", words.get("enqueued_after")),
            until=_time("enqueued_before", words.get("enqueued_before")),
            input=None if given is None else check_option("input", _contained, given),
        )

    @property
    def span(self) -> tuple[UUID, UUID]:
        """The range of ids that can match: the first one, and the first one beyond it."""
        return (
            FIRST_ID if self.since is None else _id_at(self.since, -EARLY),
            LAST_ID if self.until is None else _id_at(self.until, LATE),
        )

    def values(self, states: frozenset[State] | None) -> dict[str, object]:
        """The filters as parameters of statements, limited to the states that the statement can find."""
        return {
            "states": None if states is None else array_literal(sorted(states)),
            "kind": self.kind,
            "queue": self.queue,
            "priority": self.priority,
            "capability": self.capability,
            "key": self.key,
            "parent": None if self.parent is None else str(self.parent),
            "since": self.since,
            "until": self.until,
            "input": self.input,
        }


def to_states(given: State | str | Sequence[State | str]) -> frozenset[State]:
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise ConfigError(f"state is an empty list, which matches no job: leave it out, or name some of {', '.join(State)}")
    return frozenset(_state(name) for name in names)


def to_id(given: UUID | str) -> UUID:
    """Raises `InvalidJobId`, which is a `JobNotFound`: ids often come from a URL."""
    if isinstance(given, UUID):
        return given
    try:
        return UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidJobId(given if isinstance(given, str) else repr(given)) from None


def _parent(given: UUID | str) -> UUID:
    try:
        return to_id(given)
    except InvalidJobId:
        raise ConfigError(f"parent is {given!r}, which is not a UUID: give the id as enqueue returned it") from None


def _state(name: object) -> State:
    try:
        return State(name)  # type: ignore[arg-type]
    except ValueError:
        raise ConfigError(_unknown("state", name, list(State))) from None


def _unknown(what: str, name: object, known: Sequence[str]) -> str:
    near = get_close_matches(str(name).lower(), known, n=1)
    hint = f"did you mean {str(near[0])!r}? " if near else ""
    return f"{what} {name!r} is unknown: {hint}there are {', '.join(known)}"


def _text(what: str, given: str | None) -> str | None:
    if given is not None and (not isinstance(given, str) or not given or "\0" in given):
        raise ConfigError(f"{what} is {given!r}, but must be a text that is not empty: leave it out to match all", option=what)
    return given


def _time(what: str, given: datetime | None) -> datetime | None:
    if given is not None and (not isinstance(given, datetime) or given.tzinfo is None):
        raise ConfigError(
            f"{what} is {given!r}, but must be a datetime with a time zone, such as datetime.now(timezone.utc)", option=what
        )
    return given


def _contained(given: Mapping[str, Any]) -> str:
    if not isinstance(given, Mapping):
        raise ConfigError(f"input is {given!r}, but must be a mapping that the job's input contains")
    return plain_json(dict(given), what="the input filter")


def _id_at(moment: datetime, shift: timedelta) -> UUID:
    """The lowest UUIDv7 of that time, shifted. The sum need not be a valid time: a filter may begin with the year 1."""
    milliseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC) + shift) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)
