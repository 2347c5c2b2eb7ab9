"""What a handler may return or raise to say how its job goes on. Outcomes are values.

`Snooze`, `Fail` and `Cancel` are exceptions as well, so that code deep inside a handler can raise them.
"""

from __future__ import annotations

from datetime import timedelta

from tenure.model.durations import Duration, to_timedelta


class Outcome(Exception):  # noqa: N818 - a decision, not an error
    """Return it or raise it from a handler."""


class Snooze(Outcome):
    """Run the job again after `delay`. No attempt is spent."""

    def __init__(self, delay: Duration) -> None:
        self.delay: timedelta = to_timedelta(delay, what="Snooze delay")
        super().__init__(f"snoozed for {self.delay}")


class Fail(Outcome):
    """The job has failed for good: no retry, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason or "failed by its handler")


class Cancel(Outcome):
    """The job is not needed any more."""

    def __init__(self, reason: str = "") -> None:
        self.reason = str(reason)
        super().__init__(self.reason or "canceled by its handler")
