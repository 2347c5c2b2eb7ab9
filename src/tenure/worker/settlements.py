"""How a run ended, as what is to be written: a pure decision."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tenure.model.errors import InvalidInput
from tenure.model.outcomes import Cancel, Fail, Outcome, Snooze
from tenure.model.payloads import clean_text, describe_exception
from tenure.worker.runs import Run


@dataclass(slots=True)
class Settlement:
    run: Run
    finishing: bool
    """Moves the job to history; otherwise it stays live."""
    text: str
    """One JSON object for the settling statement."""
    delayed: bool = False
    """The job is to be promoted later: the stager wants to know."""


def of_result(run: Run, result: Any) -> Settlement:
    """The handler returned."""
    if isinstance(result, Outcome):
        return of_outcome(run, result)
    output = run.kind.output.encode(result)
    return Settlement(run, True, f'{{"id":"{run.job_id}","claim_id":"{run.claim_id}","output":{output.decode()}}}')


def of_outcome(run: Run, outcome: Outcome) -> Settlement:
    match outcome:
        case Snooze():
            return _move(run, "scheduled", delay=outcome.delay.total_seconds(), refund=1)
        case Fail():
            return _finish(run, "failed", outcome.reason or "failed by its handler")
        case Cancel():
            return _finish(run, "canceled", outcome.reason or "canceled by its handler")
        case _:
            return of_error(run, TypeError(f"{type(outcome).__name__} is not an outcome that Tenure knows"))


def of_error(run: Run, error: BaseException) -> Settlement:
    """The handler raised: again after a while, or set aside for a person to look at."""
    text = describe_exception(error)
    policy = run.kind.retry
    if isinstance(error, InvalidInput) or run.attempt >= run.max_attempts or not policy.wants(error):
        return _move(run, "dead_letter", error=text)
    return _move(run, "retry", delay=policy.delay(run.attempt, random.random()).total_seconds(), error=text)  # noqa: S311


def of_timeout(run: Run) -> Settlement:
    return of_error(run, TimeoutError(f"timed out: {run.kind.name} may run for {run.kind.timeout}"))


def handed_back(run: Run) -> Settlement:
    """Not our time any more: to its old place, no attempt spent."""
    return _move(run, "pending", refund=1)


def _finish(run: Run, state: str, error: str) -> Settlement:
    return Settlement(run, True, _text(run, state=state, error=clean_text(error)))


def _move(run: Run, state: str, **fields: Any) -> Settlement:
    return Settlement(run, False, _text(run, state=state, **fields), delayed="delay" in fields)


def _text(run: Run, **fields: Any) -> str:
    return json.dumps({"id": run.job_id, "claim_id": run.claim_id, **fields}, ensure_ascii=False)
