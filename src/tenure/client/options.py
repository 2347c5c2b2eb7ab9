"""The options of a single call, which override those of the job's definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, Protocol, TypedDict, Unpack
from uuid import UUID

from tenure.model.durations import Duration, to_seconds
from tenure.model.errors import ConfigError
from tenure.model.keys import checked as checked_key
from tenure.model.keys import has_lasting_text, key_scope
from tenure.model.kinds import KeyScope
from tenure.model.names import check_name, shown
from tenure.model.options import check_option, check_option_names, flag, one_of, whole_number
from tenure.model.payloads import Json, plain_json
from tenure.model.priorities import to_priority
from tenure.model.retries import MOST_ATTEMPTS, Retry

OnBlockerFailure = Literal["cancel", "run", "wait"]
"""What happens to a job if a chain that it waits for fails, is canceled or deleted: it is canceled too, runs nevertheless, or
waits until the chain is replayed and completes."""


class HasId(Protocol):
    """A handle of a job, a chain or a group."""

    @property
    def id(self) -> UUID: ...


Blocker = HasId | UUID | str
"""A chain, by a handle or by the id of one of its jobs."""

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
    @property
    def expires(self) -> timedelta | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    queue: str | None = None
    priority: int | None = None
    capability: str | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    delay: float | None = None
    run_at: datetime | None = None
    expires: float | None = None
    """Seconds after the enqueue at which a job that was not started is canceled."""
    expires_at: datetime | None = None
    key: str | Literal[True] | None = None
    key_for: KeyScope | None = None
    auth: Json | None = None
    meta: Json | None = None
    conn: object | None = None
    in_transaction: bool = True
    """False: not part of the transaction that the framework has open where the job is enqueued."""
    notify: bool | None = None
    """Whether workers are notified when the caller's transaction commits. None: as in the settings."""
    within: float | None = None
    """Seconds for which an enqueue is repeated while PostgreSQL is away. None: as in the settings."""
    after: tuple[str, ...] = ()
    """The ids of chains that must end first."""
    on_blocker_failure: OnBlockerFailure | None = None


class CallOptions(TypedDict, total=False):
    """The options of `job.using(...)` and `app.enqueue(...)`."""

    queue: str | None
    priority: int | str | None
    capability: str | None
    max_attempts: int | None
    timeout: Duration | None
    delay: Duration | None
    run_at: datetime | None
    expires: Duration | datetime | None
    key: str | int | UUID | bool | None
    key_for: Duration | None
    auth: Any
    meta: Mapping[str, Any] | None
    conn: object | None
    in_transaction: Literal[False] | None
    notify: bool | None
    within: Duration | None
    after: Sequence[Blocker] | None
    on_blocker_failure: OnBlockerFailure | None


CALL_OPTIONS = tuple(CallOptions.__annotations__)


def call_options(job: str, what: str, /, **options: Unpack[CallOptions]) -> Options:
    """The options, checked. Errors name the `job`; `what` is the function that was called."""
    check_option_names(options, CALL_OPTIONS, what=what)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "delay" in given and "run_at" in given:
        check_option("run_at", _refuse_both, given)
    # Only what is given is looked at: nearly always that is one option, such as `conn`.
    checked = {name: check_option(name, _CHECKS[name], value) for name, value in given.items() if name in _CHECKS}
    if isinstance(given.get("expires"), datetime):
        checked["expires_at"] = check_option("expires", partial(_moment, what="expires"), given["expires"])
    elif "expires" in given:
        checked["expires"] = check_option("expires", partial(to_seconds, what="expires"), given["expires"])
    if "key" in given:
        checked["key"] = check_option("key", partial(_key, job=job), given["key"])
    if "in_transaction" in given:
        checked["in_transaction"] = _in_transaction(given)
    return Options(conn=given.get("conn"), **checked)


def _refuse_both(_: Mapping[str, Any]) -> None:
    raise ConfigError("give either delay or run_at, not both")


def _in_transaction(given: Mapping[str, Any]) -> bool:
    wanted = given["in_transaction"]
    if wanted is not False:
        raise ConfigError(f"in_transaction is {shown(wanted)}, but can only be False: to join a transaction, give conn=")
    if given.get("conn") is not None:
        raise ConfigError("give either conn or in_transaction=False, not both")
    return False


def _blockers(given: Any) -> tuple[str, ...]:
    if isinstance(given, str | UUID) or not isinstance(given, Iterable):
        raise ConfigError(f"after is {shown(given)}, but must be a list of handles or ids: after=[handle]")
    return tuple(str(_blocker_id(one)) for one in given)


def _blocker_id(given: Any) -> UUID:
    found = getattr(given, "id", given)
    try:
        return found if isinstance(found, UUID) else UUID(str(found))
    except ValueError:
        raise ConfigError(f"after contains {shown(given)}, which is neither a handle nor the id of a job") from None


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


def _moment(given: Any, what: str = "run_at") -> datetime:
    instead = "use datetime.now(timezone.utc) + ..." + (" or give delay" if what == "run_at" else ' or a duration, such as "1h"')
    if not isinstance(given, datetime):
        raise ConfigError(f"{what} is {shown(given)}, but must be a datetime: {instead}")
    if given.tzinfo is None:
        raise ConfigError(f"{what} needs a time zone: {instead}")
    if not EARLIEST <= given <= LATEST:
        raise ConfigError(f"{what} is {given.isoformat()}, but must lie between the years {EARLIEST.year} and {LATEST.year}")
    return given


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "queue": partial(check_name, what="queue"),
    "priority": to_priority,
    "capability": partial(check_name, what="capability"),
    "max_attempts": partial(whole_number, low=1, high=MOST_ATTEMPTS, what="max_attempts"),
    "timeout": partial(to_seconds, what="timeout"),
    "delay": lambda given: to_seconds(given, what="delay") or None,
    "run_at": _moment,
    "key_for": key_scope,
    "auth": partial(plain_json, what="auth"),
    "meta": _meta,
    "notify": partial(flag, what="notify"),
    "within": partial(to_seconds, what="within"),
    "after": _blockers,
    "on_blocker_failure": partial(one_of, choice=OnBlockerFailure, what="on_blocker_failure"),
}
