"""What a handler may return or raise to decide how its job ends or continues. Outcomes are values.

They are exceptions as well, so that code deep inside a handler can raise them.

An outcome is defined in its class: `decide()` returns what is written about the job, `to_wire()` and `from_wire()` carry it
from the process of a handler to the worker. `_BY_NAME` lists all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from tenure.model.durations import Duration, to_timedelta
from tenure.model.errors import ConfigError
from tenure.model.options import checks_fields
from tenure.model.payloads import Json, clean_text, describe_exception, with_members
from tenure.model.wakeup import Topic, Wakeup

if TYPE_CHECKING:
    from tenure.model.suspensions import Suspension

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Output(Protocol):
    """Any value, except an outcome. For type checkers: without it, mypy cannot tell apart what a handler returns and what a
    chain that it continues returns."""

    def __sizeof__(self) -> int: ...


X = TypeVar("X", bound="Output | None")


@dataclass(frozen=True, slots=True)
class NextLink(Generic[R_co]):
    """The next link of a chain, made by `job.link(...)`. The parameter is the result of its job."""

    job: Json
    """An object as `tenure.enqueue()` takes it."""
    wakeups: tuple[Wakeup, ...]
    """To be sent when it is committed."""
    keeps_capability: bool = False
    """It has the capability of the link before it."""
    signals: Mapping[str, int] = field(default_factory=dict)
    """By name: it receives the signals behind these positions."""

    def to_json(self) -> Json:
        """For the statement that continues a chain."""
        members: dict[str, Json] = {}
        if self.keeps_capability:
            members["keeps_capability"] = "true"
        if self.signals:
            members["signals"] = json.dumps(self.signals)
        return with_members(self.job, **members) if members else self.job

    def to_wire(self) -> dict[str, Any]:
        """JSON values from which `from_wire()` builds the same link."""
        return {
            "job": self.job,
            "wakeups": self.wakeups,
            "keeps_capability": self.keeps_capability,
            "signals": self.signals,
        }

    @staticmethod
    def from_wire(value: dict[str, Any]) -> NextLink[Any]:
        wakeups = tuple(Wakeup(Topic(topic), subject) for topic, subject in value["wakeups"])
        return NextLink(**{**value, "wakeups": wakeups})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of the job."""

    state: str
    what: str
    """How the run ended, in events and in the job's report."""
    error: str | None = None
    delay: float | None = None
    """Seconds until the job is due."""
    until: str | None = None
    """When the job is due, in ISO 8601."""
    refund: int = 0
    """1: no attempt is spent."""
    next: NextLink[Any] | None = None
    """The next link of the chain, which is created when the job completes."""
    suspension: Suspension | None = None
    """What a workflow waits for."""


class Outcome(Exception):  # noqa: N818 - a decision, not an error
    """Return it or raise it from a handler."""

    if TYPE_CHECKING:

        def __sizeof__(self) -> str: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] - not an `Output`

    def decide(self) -> Decision:
        raise self._unknown()

    def to_wire(self) -> tuple[str, Any]:
        """A name and JSON values from which `from_wire()` builds the same outcome."""
        raise self._unknown()

    @staticmethod
    def from_wire(name: str, value: Any) -> Outcome:
        return _BY_NAME[name].of_wire_value(value)

    @classmethod
    def of_wire_value(cls, value: Any) -> Outcome:
        """The value that `to_wire()` gave."""
        return cls(value)

    def _unknown(self) -> TypeError:
        return TypeError(
            f"{type(self).__name__} is not an outcome that Tenure knows: use Snooze, RetryAfter, Fail, Cancel or Continue"
        )


@checks_fields
class Snooze(Outcome):
    """Run the job again after `delay`, or at the time `until`. No attempt is spent.

    `Snooze("10m")`, `Snooze(until=datetime(2030, 1, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")))`
    """

    @overload
    def __init__(self, delay: Duration) -> None: ...
    @overload
    def __init__(self, *, until: datetime) -> None: ...

    def __init__(self, delay: Duration | None = None, *, until: datetime | None = None) -> None:
        if (delay is None) == (until is None):
            raise ConfigError('Snooze takes either a delay, Snooze("10m"), or a time, Snooze(until=...)')
        self.delay: timedelta | None = None if delay is None else to_timedelta(delay, what="Snooze delay")
        self.until: datetime | None = None if until is None else _in_utc(until)
        super().__init__(f"snoozed until {self.until}" if self.delay is None else f"snoozed for {self.delay}")

    def decide(self) -> Decision:
        delay = None if self.delay is None else self.delay.total_seconds()
        until = None if self.until is None else self.until.isoformat()
        return Decision(state="scheduled", what="snoozed", delay=delay, until=until, refund=1)

    def to_wire(self) -> tuple[str, Any]:
        decision = self.decide()
        return "snooze", decision.until if decision.delay is None else decision.delay

    @classmethod
    def of_wire_value(cls, value: Any) -> Outcome:
        return Snooze(until=datetime.fromisoformat(value)) if isinstance(value, str) else Snooze(value)


def _in_utc(until: datetime) -> datetime:
    if not isinstance(until, datetime):
        raise ConfigError(f"Snooze(until=...) is {until!r}, which is not a datetime: use datetime(..., tzinfo=UTC)")
    if until.utcoffset() is None:
        raise ConfigError(f"Snooze(until=...) is {until!r}, which has no time zone: use datetime(..., tzinfo=UTC)")
    try:
        return until.astimezone(UTC)
    except (OverflowError, ValueError):
        raise ConfigError(f"Snooze(until=...) is {until!r}, which is outside of the years 1 to 9999 in UTC") from None


@checks_fields
class RetryAfter(Outcome):
    """Try again after `delay`, whatever the job's backoff is. The attempt is spent: without another one, it is a dead letter.

    `raise RetryAfter("30s") from error` keeps the error with the job. For a wait that is not a failure, use `Snooze`.
    """

    def __init__(self, delay: Duration, reason: str = "") -> None:
        self.delay: timedelta = to_timedelta(delay, what="RetryAfter delay")
        self.reason = str(reason)
        super().__init__(self.reason or f"to be tried again after {self.delay}")

    def decide(self) -> Decision:
        text = self.reason or (describe_exception(self.__cause__) if self.__cause__ is not None else str(self))
        return Decision(state="retry", what="failed", error=clean_text(text), delay=self.delay.total_seconds())

    def to_wire(self) -> tuple[str, Any]:
        decision = self.decide()
        return "retry_after", {"delay": decision.delay, "reason": decision.error}

    @classmethod
    def of_wire_value(cls, value: Any) -> Outcome:
        return RetryAfter(value["delay"], value["reason"])


class Fail(Outcome):
    """The job has failed for good: no retry, even if attempts are left."""

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason or "failed by its handler")

    def decide(self) -> Decision:
        return Decision(state="failed", what="failed", error=clean_text(self.reason or "failed by its handler"))

    def to_wire(self) -> tuple[str, Any]:
        return "fail", clean_text(self.reason)


class Cancel(Outcome):
    """The job is no longer needed."""

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason or "canceled by its handler")

    def decide(self) -> Decision:
        return Decision(state="canceled", what="canceled", error=clean_text(self.reason or "canceled by its handler"))

    def to_wire(self) -> tuple[str, Any]:
        return "cancel", clean_text(self.reason)


class Linkable(Protocol[P, R_co]):
    """What can be the next link of a chain: `job`, or `job.using(...)`."""

    def link(self, *args: P.args, **kwargs: P.kwargs) -> NextLink[R_co]: ...


class Continue(Outcome, Generic[R_co]):
    """The job is completed, and `job` is the next link of its chain. Both are written together, or neither.

    `Continue(charge, order_id)`, `Continue(remind.using(delay="1d"), order_id)`. The chain's result is that of its last link.
    """

    def __init__(
        self: Continue[X],
        job: Linkable[P, X | Snooze | RetryAfter | Fail | Cancel | Continue[X]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        link = getattr(job, "link", None)
        if link is None:
            raise ConfigError(
                f"Continue got {job!r:.100}, which is not a job: use Continue(job, ...) or Continue(job.using(...), ...)"
            )
        self._set(link(*args, **kwargs))

    def _set(self, link: NextLink[Any]) -> None:
        self.link = link
        super().__init__("continued by the next job of its chain")

    def with_signals(self, positions: Mapping[str, int]) -> Self:
        """The next link receives the signals behind these positions, by name."""
        if positions:
            self.link = replace(self.link, signals=positions)
        return self

    def decide(self) -> Decision:
        return Decision(state="completed", what="continued", next=self.link)

    def to_wire(self) -> tuple[str, Any]:
        return "continue", self.link.to_wire()

    @classmethod
    def of_wire_value(cls, value: Any) -> Outcome:
        outcome = cls.__new__(cls)
        outcome._set(NextLink.from_wire(value))  # noqa: SLF001 - its own class
        return outcome


_BY_NAME: dict[str, type[Outcome]] = {
    "snooze": Snooze,
    "retry_after": RetryAfter,
    "fail": Fail,
    "cancel": Cancel,
    "continue": Continue,
}

OUTCOMES = tuple(_BY_NAME.values())
"""What a handler may return instead of a result."""
