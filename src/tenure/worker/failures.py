"""One log record for each failed attempt, with the exception itself: what Sentry, pytest and people look for."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from tenure.logs import SPELLED_OUT
from tenure.worker.settlements import Settlement

log = logging.getLogger("tenure")


@dataclass(frozen=True, kw_only=True)
class FailureLevels:
    failed_attempt: int = logging.WARNING
    """An attempt failed and the job is tried again, or its handler ended it with `Fail`."""

    dead_letter: int = logging.ERROR
    """The job is a dead letter: its attempts are used up, or its process died too often."""


def log_failure(settlement: Settlement, levels: FailureLevels) -> None:
    """Nothing for runs that did not fail. The exception is let go afterwards: its traceback holds the handler's variables."""
    cause, settlement.cause = settlement.cause, None
    if settlement.state == "dead_letter":
        level, text = levels.dead_letter, "job %s (%s) failed in attempt %d of %d and is a dead letter now"
    elif settlement.what in ("failed", "timed_out", "crashed"):
        level, text = levels.failed_attempt, "job %s (%s) failed in attempt %d of %d" + _next(settlement)
    else:
        return
    run = settlement.run
    log.log(
        level,
        text,
        run.job_id,
        run.kind.name,
        run.attempt,
        run.max_attempts,
        exc_info=cause,
        extra={**_fields(settlement, cause), SPELLED_OUT: True},
    )


def _next(settlement: Settlement) -> str:
    if settlement.state == "retry":
        return f"; the next one follows in {settlement.delay:.3g} s"
    return "; it is requeued" if settlement.state == "pending" else ""


def _fields(settlement: Settlement, cause: BaseException | None) -> dict[str, Any]:
    run = settlement.run
    fields = {
        "job_id": run.job_id,
        "kind": run.kind.name,
        "queue": run.queue,
        "attempt": run.attempt,
        "max_attempts": run.max_attempts,
        "worker_id": run.worker_id,
        "what": settlement.what,
        "state": settlement.state,
    }
    if cause is not None:
        fields["error_type"] = type(cause).__name__
    if settlement.delay is not None:
        fields["next_in"] = round(settlement.delay, 3)
    return fields
