"""Logs failures that are retried: once when they begin, at most once a minute while they last, and once when they are over.

A retry loop calls `failed()`. A failure is over when PostgreSQL has done what failed: after a lost connection any statement,
after a rejected connection a new one, after a failed statement the same statement. A round without statements does not count.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from tenure.logs import SPELLED_OUT
from tenure.model.errors import StoreUnavailable, TenureError

log = logging.getLogger("tenure")

REPEAT_AFTER = 60.0
"""Seconds between two reports of the same failure."""

BRIEF = 1.0
"""Seconds. A failure that lasts less and returns within `REPEAT_AFTER` is logged at DEBUG: one of several connections flaps. If
it lasts longer this time, it is logged like any other."""

FORGET_AFTER = 120.0
"""Seconds after which a failed statement that was not run again no longer keeps the failure open."""

ANY, CONNECT = "", "connect"
"""What has to succeed before a failure is over, if that is not a specific statement: any statement, or a new connection."""

Key = tuple[str, str, str]
"""Server, cause, text."""


@dataclass
class OngoingFailure:
    who: str
    began: float
    reported: float
    level: int = logging.WARNING
    count: int = 0
    failing: dict[str, float] = field(default_factory=dict)
    """What has to succeed before it is over, and when each last failed."""

    def is_due(self, now: float) -> bool:
        """Whether to report it again, or for the first time if it was regarded as flapping."""
        if self.level == logging.DEBUG and now - self.began >= BRIEF:
            return True
        return now - self.reported >= REPEAT_AFTER

    def is_over(self, succeeded: str, now: float) -> bool:
        done = self.failing.keys() & ({succeeded} if succeeded == CONNECT else {succeeded, ANY})
        for name in done:
            del self.failing[name]
        return bool(done) and all(now - at > FORGET_AFTER for at in self.failing.values())


class Failures:
    """One instance for the process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._open: dict[Key, OngoingFailure] = {}
        self._flapping: dict[Key, float] = {}
        """Failures that lasted less than `BRIEF`, and when they were last reported at their full level."""
        self._lock = threading.Lock()

    def failed(self, who: str, error: Exception) -> None:
        """`who` has failed and will retry. Exceptions that are not Tenure's are logged with their traceback."""
        key, has_to_succeed, text = _described(who, error)
        self._note(key, has_to_succeed, who, text, None if isinstance(error, TenureError) else error)

    def blocked(self, server: str, statement: str, text: str, known_by: str) -> None:
        """A statement is running and waits for a lock. Over when it succeeds."""
        self._note((server, "blocked", known_by), statement, statement, text, None)

    def succeeded(self, server: str, what: str) -> None:
        """A statement has succeeded, or (`CONNECT`) a connection was made."""
        if self._open:
            self._close(server, what)

    def recovered(self, who: str) -> None:
        """A loop that failed without PostgreSQL being involved has completed a round."""
        if self._open:
            self._close("", who)

    def _note(self, key: Key, has_to_succeed: str, who: str, text: str, error: Exception | None) -> None:
        now = time.monotonic()
        with self._lock:
            failure = self._open.get(key)
            is_new = failure is None
            if failure is None:
                failure = self._open[key] = self._begun(key, who, now)
            failure.count += 1
            failure.failing[has_to_succeed] = now
            if not (is_new or failure.is_due(now)):
                return
            if not is_new:
                failure.reported, failure.level = now, logging.WARNING
        repeated = f"still failing after {failure.count} attempts in {now - failure.began:.0f} s"
        state = ("waiting" if key[1] == "blocked" else "retrying") if is_new else repeated
        level = logging.ERROR if error is not None and failure.level == logging.WARNING else failure.level
        fields = _fields(key, failure, now)
        log.log(level, "%s; %s", text, state, exc_info=error if is_new else None, extra=fields)

    def _begun(self, key: Key, who: str, now: float) -> OngoingFailure:
        reported = self._flapping.pop(key, None)
        if reported is None or now - reported >= REPEAT_AFTER:
            return OngoingFailure(who, began=now, reported=now)
        return OngoingFailure(who, began=now, reported=reported, level=logging.DEBUG)

    def _close(self, server: str, succeeded: str) -> None:
        now = time.monotonic()
        with self._lock:
            over = {key: failure for key, failure in self._open.items() if key[0] == server and failure.is_over(succeeded, now)}
            for key, failure in over.items():
                del self._open[key]
                if now - failure.began < BRIEF:
                    self._flapping[key] = failure.reported
                else:
                    failure.level = max(failure.level, logging.INFO)
        for key, failure in over.items():
            log.log(min(failure.level, logging.INFO), "%s", _end_of(key, failure, now), extra=_fields(key, failure, now))


def _described(who: str, error: Exception) -> tuple[Key, str, str]:
    """What identifies the failure, what has to succeed before it is over, and its text."""
    if not isinstance(error, TenureError):
        return ("", type(error).__name__, f"{who}: {error}"), who, f"{who} failed"
    if isinstance(error, StoreUnavailable) and error.cause == "connection":
        return (error.server, "connection", ""), ANY, str(error)
    server, statement = getattr(error, "server", ""), getattr(error, "statement", "")
    cause = getattr(error, "cause", type(error).__name__)
    if isinstance(error, StoreUnavailable) and not statement:
        return (server, cause, ""), CONNECT, str(error)
    return (server if statement else "", cause, str(error)), statement or who, f"{who}: {error}"


def _fields(key: Key, failure: OngoingFailure, now: float) -> dict[str, object]:
    lasted = round(now - failure.began, 1)
    return {SPELLED_OUT: True, "cause": key[1], "who": failure.who, "attempts": failure.count, "seconds": lasted}


def _end_of(key: Key, failure: OngoingFailure, now: float) -> str:
    lasted = f"{now - failure.began:.1f} s"
    match key:
        case (_, "connection", _):
            return f"PostgreSQL is back after {lasted}"
        case (_, "blocked", _):
            return f"{failure.who} is no longer blocked, {lasted} after the report"
    return (
        f"{failure.who}: works again after {failure.count} failed {'attempt' if failure.count == 1 else 'attempts'} in {lasted}"
    )


failures = Failures()
