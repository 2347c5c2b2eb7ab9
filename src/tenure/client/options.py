"""What a single call may say differently from its job's definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.keys import checked, has_lasting_text, key_scope
from tenure.model.kinds import KeyScope
from tenure.model.names import check_name, shown
from tenure.model.options import checks_options, flag, option_names, whole_number
from tenure.model.payloads import Json, plain_json
from tenure.model.priorities import to_priority
from tenure.model.retries import MOST_ATTEMPTS, Retry

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""A time outside of these is a mistake, such as datetime.max, and not a plan. tenure.enqueue() checks the same."""


class Target(Protocol):
    """What an enqueue must know of the job: a kind of this app, or only its name."""

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
    """Inside a transaction of the caller's: whether workers are notified when it commits. None: as the setting says."""
    within: float | None = None
    """Seconds for which an enqueue is repeated while PostgreSQL is away. None: as the setting says."""


@checks_options("a call")
def call_options(
    *,
    queue: str | None = None,
    priority: int | str | None = None,
    capability: str | None = None,
    max_attempts: int | None = None,
    timeout: Duration | None = None,
    delay: Duration | None = None,
    run_at: datetime | None = None,
    key: Any = None,
    key_for: Duration | None = None,
    auth: Any = None,
    meta: Mapping[str, Any] | None = None,
    conn: object | None = None,
    notify: bool | None = None,
    within: Duration | None = None,
    job: str,
) -> Options:
    """Checked. `job` is named in messages."""
    if delay is not None and run_at is not None:
        raise ConfigError("give either delay or run_at, not both")
    if meta is not None and not isinstance(meta, Mapping):
        raise ConfigError(f"meta is {shown(meta)}, but must be a mapping of names to JSON values")
    return Options(
        queue=None if queue is None else check_name(queue, what="queue"),
        priority=None if priority is None else to_priority(priority),
        capability=None if capability is None else check_name(capability, what="capability"),
        max_attempts=None if max_attempts is None else whole_number(max_attempts, 1, MOST_ATTEMPTS, what="max_attempts"),
        timeout=None if timeout is None else to_seconds(timeout, what="timeout"),
        delay=None if delay is None else to_seconds(delay, what="delay") or None,
        run_at=None if run_at is None else _moment(run_at),
        key=_key(key, job),
        key_for=None if key_for is None else key_scope(key_for),
        auth=None if auth is None else plain_json(auth, what="auth"),
        meta=None if meta is None else plain_json(meta, what="meta"),
        conn=conn,
        notify=None if notify is None else flag(notify, what="notify"),
        within=None if within is None else to_seconds(within, what="within"),
    )


CALL_OPTIONS = [option for option in option_names(call_options) if option != "job"]
"""The names that `using(...)` and `app.enqueue(...)` take."""


def _key(given: Any, job: str) -> str | Literal[True] | None:
    if given is None or given is True:
        return given
    if not has_lasting_text(given):
        raise ConfigError(f"key is {shown(given)}: give a text, a number, a UUID, or True for the whole input")
    return checked(given, kind=job)


def _moment(given: Any) -> datetime:
    if not isinstance(given, datetime):
        raise ConfigError(f"run_at is {shown(given)}, but must be a datetime: use datetime.now(timezone.utc) + ... or give delay")
    if given.tzinfo is None:
        raise ConfigError("run_at needs a time zone: use datetime.now(timezone.utc) + ... or give delay")
    if not EARLIEST <= given <= LATEST:
        raise ConfigError(f"run_at is {given.isoformat()}, but must lie between the years {EARLIEST.year} and {LATEST.year}")
    return given
