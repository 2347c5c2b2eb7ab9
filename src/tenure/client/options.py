"""The options of a single call, which override those of the job's definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack
from uuid import UUID

from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.keys import checked as checked_key
from tenure.model.keys import has_lasting_text, key_scope
from tenure.model.kinds import KeyScope
from tenure.model.names import check_name, shown
from tenure.model.options import check_option_names, flag, whole_number
from tenure.model.payloads import Json, plain_json
from tenure.model.priorities import to_priority
from tenure.model.retries import MOST_ATTEMPTS, Retry

T = TypeVar("T")

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""A time outside of this range is a mistake, such as datetime.max. tenure.enqueue() checks the same."""


class Target(Protocol):
    """The properties of a job that an enqueue needs. The app may define the job, or know only its name."""

    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def capability(self) -> str | None: ...
    @property
    def retry(self) -> Retry: ...
    @property
    def key_for(self) -> KeyScope | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    queue: str | None = None
    priority: int | None = None
    capability: str | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    delay: float | None = None
    run_at: datetime | None = None
    key: str | Literal[True] | None = None
    key_for: KeyScope | None = None
    auth: Json | None = None
    meta: Json | None = None
    conn: object | None = None
    notify: bool | None = None
    """Whether workers are notified when the caller's transaction commits. None: as in the settings."""
    within: float | None = None
    """Seconds for which an enqueue is repeated while PostgreSQL is away. None: as in the settings."""


class CallOptions(TypedDict, total=False):
    """The options of `job.using(...)` and `app.enqueue(...)`."""

    queue: str | None
    priority: int | str | None
    capability: str | None
    max_attempts: int | None
    timeout: Duration | None
    delay: Duration | None
    run_at: datetime | None
    key: str | int | UUID | bool | None
    key_for: Duration | None
    auth: Any
    meta: Mapping[str, Any] | None
    conn: object | None
    notify: bool | None
    within: Duration | None


CALL_OPTIONS = tuple(CallOptions.__annotations__)


def call_options(job: str, what: str, /, **options: Unpack[CallOptions]) -> Options:
    """The options, checked. Errors name the `job`; `what` is the function that was called."""
    check_option_names(options, CALL_OPTIONS, what=what)
    given: Mapping[str, Any] = options

    def checked(name: str, check: Callable[..., T], **more: Any) -> T | None:
        return None if given.get(name) is None else check(given[name], **more)

    if given.get("delay") is not None and given.get("run_at") is not None:
        raise ConfigError("give either delay or run_at, not both")
    return Options(
        queue=checked("queue", check_name, what="queue"),
        priority=checked("priority", to_priority),
        capability=checked("capability", check_name, what="capability"),
        max_attempts=checked("max_attempts", whole_number, low=1, high=MOST_ATTEMPTS, what="max_attempts"),
        timeout=checked("timeout", to_seconds, what="timeout"),
        delay=checked("delay", to_seconds, what="delay") or None,
        run_at=checked("run_at", _moment),
        key=None if given.get("key") is None else _key(given["key"], job),
        key_for=checked("key_for", key_scope),
        auth=checked("auth", plain_json, what="auth"),
        meta=checked("meta", _meta),
        conn=given.get("conn"),
        notify=checked("notify", flag, what="notify"),
        within=checked("within", to_seconds, what="within"),
    )


def _key(given: Any, job: str) -> str | Literal[True] | None:
    if given is True:
        return given
    if not has_lasting_text(given):
        raise ConfigError(f"key is {shown(given)}: give a text, a number, a UUID, or True for the whole input")
    return checked_key(given, kind=job)


def _meta(given: Any) -> Json:
    if not isinstance(given, Mapping):
        raise ConfigError(f"meta is {shown(given)}, but must be a mapping of names to JSON values")
    return plain_json(given, what="meta")


def _moment(given: Any) -> datetime:
    if not isinstance(given, datetime):
        raise ConfigError(f"run_at is {shown(given)}, but must be a datetime: use datetime.now(timezone.utc) + ... or give delay")
    if given.tzinfo is None:
        raise ConfigError("run_at needs a time zone: use datetime.now(timezone.utc) + ... or give delay")
    if not EARLIEST <= given <= LATEST:
        raise ConfigError(f"run_at is {given.isoformat()}, but must lie between the years {EARLIEST.year} and {LATEST.year}")
    return given
