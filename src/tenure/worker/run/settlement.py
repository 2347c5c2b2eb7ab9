"""How a run ended, as what is to be written: a pure decision."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tenure.model.errors import InvalidInput, ProcessDied, TransactionError
from tenure.model.outcomes import Cancel, Fail, Outcome, Snooze
from tenure.model.payloads import clean_text, describe_exception
from tenure.store.workers import MAX_CRASHES
from tenure.worker.process.exceptions import remote_of
from tenure.worker.run.run import Run


@dataclass(slots=True)
class Settlement:
    run: Run
    finishing: bool
    """Moves the job to history; otherwise it stays live."""
    text: str
    """One JSON object for the settling statement."""
    state: str = "completed"
    what: str = "completed"
    error: str | None = None
    delay: float | None = None
    """Seconds until the next attempt."""
    cause: BaseException | None = None
    """What the handler raised, until it has been logged."""
    in_place_of_refused: bool = False
    """PostgreSQL refused the outcome itself: this is the failure that is recorded in its place."""
    instead_of: Settlement | None = None
    """What the handler's own transaction may have settled already: its COMMIT was never answered."""


def of_result(run: Run, result: Any) -> Settlement:
    """The handler returned."""
    if isinstance(result, Outcome):
        return of_outcome(run, result)
    output = run.kind.output.encode(result)
    return Settlement(run, True, f'{{"id":"{run.job_id}","claim_id":"{run.claim_id}","output":{output.decode()}}}')


def of_completion(run: Run) -> Settlement:
    """The handler's own session is done, before the handler has returned anything."""
    return Settlement(run, True, f'{{"id":"{run.job_id}","claim_id":"{run.claim_id}"}}')


def of_outcome(run: Run, outcome: Outcome) -> Settlement:
    try:
        return _of_outcome(run, outcome)
    except Exception as error:  # noqa: BLE001 - a subclass that did not call its parent's __init__
        return of_error(run, error)


def _of_outcome(run: Run, outcome: Outcome) -> Settlement:
    match outcome:
        case Snooze():
            return _move(run, "scheduled", "snoozed", **_due(outcome), refund=1)
        case Fail():
            return _finish(run, "failed", outcome.reason or "failed by its handler")
        case Cancel():
            return _finish(run, "canceled", outcome.reason or "canceled by its handler")
        case _:
            return of_error(run, TypeError(f"{type(outcome).__name__} is not an outcome that Tenure knows"))


def _due(snooze: Snooze) -> dict[str, Any]:
    if snooze.delay is not None:
        return {"delay": snooze.delay.total_seconds()}
    assert snooze.until is not None
    return {"until": snooze.until.isoformat()}


def of_error(run: Run, error: BaseException, what: str = "failed") -> Settlement:
    """The handler raised: again after a while, or set aside for a person to look at."""
    if isinstance(error, ProcessDied):
        return of_crash(run, str(error))
    policy, remote = run.kind.retry, remote_of(error)
    text = remote.text if remote else describe_exception(error)
    wanted = remote.wanted if remote else worth_another_attempt(run, error)
    if run.attempt >= run.max_attempts or not wanted:
        settlement = _move(run, "dead_letter", what, error=text)
    else:
        delay = policy.delay(run.attempt, random.random()).total_seconds()  # noqa: S311
        settlement = _move(run, "retry", what, delay=delay, error=text)
    settlement.cause = error
    return settlement


def worth_another_attempt(run: Run, error: BaseException) -> bool:
    """Not with input that does not fit, and not when a retry would write again what the handler committed by itself."""
    if isinstance(error, InvalidInput) or (isinstance(error, TransactionError) and error.committed):
        return False
    return run.kind.retry.wants(error)


def of_timeout(run: Run, where: BaseException | None = None) -> Settlement:
    """`where`: how the handler ended, which shows what it was doing."""
    error = TimeoutError(f"timed out: {run.kind.name} may run for {timedelta(seconds=run.time_limit or 0)}")
    settlement = of_error(run, error, "timed_out")
    error.__cause__ = where  # for the log; the job keeps the plain sentence
    return settlement


def of_crash(run: Run, cause: str) -> Settlement:
    """Its process died under it. No attempt is spent, but crashes are counted."""
    crashes = run.crashes + 1
    if crashes >= MAX_CRASHES:
        error = f"quarantined: its process died {crashes} times while running it; the last time: {cause}"
        return _move(run, "dead_letter", "crashed", refund=1, crash=1, error=error)
    return _move(run, "pending", "crashed", refund=1, crash=1, error=f"its process died: {cause}")


def requeued(run: Run) -> Settlement:
    """Not our time any more: to its old place, no attempt spent."""
    return _move(run, "pending", "handed_back", refund=1)


def _finish(run: Run, state: str, error: str) -> Settlement:
    text = clean_text(error)
    return Settlement(run, True, _text(run, state=state, error=text), state, state, text)


def _move(run: Run, state: str, what: str, **fields: Any) -> Settlement:
    text = _text(run, state=state, what=what, **fields)
    return Settlement(run, False, text, state, what, fields.get("error"), delay=fields.get("delay"))


def _text(run: Run, **fields: Any) -> str:
    return json.dumps({"id": run.job_id, "claim_id": run.claim_id, **fields}, ensure_ascii=False)
