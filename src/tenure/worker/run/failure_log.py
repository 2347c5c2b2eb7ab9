"""One log record for each failed attempt and crash, with the exception or reason: what Sentry, pytest and people look for."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from tenure.logs import SPELLED_OUT
from tenure.worker.run.settlement import Settlement

log = logging.getLogger("tenure")


@dataclass(frozen=True, kw_only=True)
class FailureLevels:
    failed_attempt: int = logging.WARNING
    """An attempt failed and the job is tried again, its process died, or its handler ended it with `Fail`."""

    dead_letter: int = logging.ERROR
    """The job is a dead letter: its attempts are used up, or its process died too often."""


def log_failure(settlement: Settlement, levels: FailureLevels, worker: str) -> None:
    """Nothing for runs that did not fail. The exception is let go afterwards: its traceback holds the handler's variables.
    `worker` is the worker's name."""
    cause, settlement.cause = settlement.cause, None
    level = levels.dead_letter if settlement.state == "dead_letter" else levels.failed_attempt
    if settlement.what == "crashed":
        text, words = _crash(settlement)
    elif settlement.state == "dead_letter" or settlement.what in ("failed", "timed_out"):
        text, words = _failure(settlement, cause)
    else:
        return
    run = settlement.run
    fields = {**_fields(settlement, cause), "worker": worker, SPELLED_OUT: True}
    log.log(level, text, run.job_id, run.kind.name, *words, exc_info=cause, extra=fields)


def _failure(settlement: Settlement, cause: BaseException | None) -> tuple[str, list[Any]]:
    """An exception follows the message with its traceback. Without one, as after `Fail`, the reason is in the message."""
    run = settlement.run
    text, words = "job %s (%s) failed in attempt %d of %d", [run.attempt, run.job.max_attempts]
    if settlement.state == "dead_letter":
        text += " and is a dead letter now"
    elif settlement.state == "retry":
        text += f"; the next one follows in {settlement.delay:.3g} s"
    if cause is None and settlement.error:
        return f"{text}: %s", [*words, settlement.error]
    return text, words


def _crash(settlement: Settlement) -> tuple[str, list[Any]]:
    """In the words in which the reaper reports jobs of workers that died."""
    if settlement.state == "dead_letter":
        return "job %s (%s) was %s; to run it again: tenure jobs replay %s", [settlement.error, settlement.run.job_id]
    return "job %s (%s) crashed: %s; it is requeued", [settlement.error]


def _fields(settlement: Settlement, cause: BaseException | None) -> dict[str, Any]:
    run = settlement.run
    fields: dict[str, Any] = {
        "job_id": run.job_id,
        "kind": run.kind.name,
        "queue": run.queue,
        "attempt": run.attempt,
        "max_attempts": run.job.max_attempts,
        "worker_id": run.worker_id,
        "what": settlement.what,
        "state": settlement.state,
    }
    if cause is not None:
        fields["error_type"] = type(cause).__name__
    elif settlement.error is not None:
        fields["error"] = settlement.error
    if settlement.what == "crashed":
        fields |= {"why": "crashed", "crashes": run.job.crashes + 1}
    if settlement.delay is not None:
        fields["next_in"] = round(settlement.delay, 3)
    return fields
