"""How a run ended, as what is to be written: a pure decision."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from tenure.model.errors import InvalidInput, ProcessDied, TransactionError
from tenure.model.outcomes import Decision, NextLink, Outcome
from tenure.model.payloads import describe_exception
from tenure.model.states import FINISHED
from tenure.model.suspensions import Suspension
from tenure.model.tracebacks import cut_to_user_code
from tenure.store import chains, jobs, workflows
from tenure.store.jobs import FinishedRuns, MovedRow, SettledRow
from tenure.store.query import Query
from tenure.worker.process.exceptions import remote_of
from tenure.worker.run.run import Run

Way = Literal["finish", "continue", "move", "suspend"]


@dataclass(slots=True)
class Settlement:
    run: Run
    state: str = "completed"
    what: str = "completed"
    output: str | None = None
    """JSON text of a completed job; None: it has none, or is added later."""
    error: str | None = None
    delay: float | None = None
    """Seconds until the job is due."""
    until: str | None = None
    """When the job is due, in ISO 8601."""
    refund: int = 0
    """1: no attempt is spent."""
    crash: int = 0
    """1: a crash is counted."""
    cause: BaseException | None = None
    """What the handler raised, until it has been logged."""
    in_place_of_refused: bool = False
    """PostgreSQL refused the outcome itself: this is the failure that is recorded in its place."""
    suspension: Suspension | None = None
    """What a workflow waits for, until it runs again."""
    instead_of: Settlement | None = None
    """What the handler's own transaction may have settled already: its COMMIT was never answered."""
    next: NextLink[Any] | None = None
    """The next link of the chain, which is created when the job completes."""
    dependants: bool = False
    """Once it is written: jobs wait for the chain that has ended."""

    @property
    def finishing(self) -> bool:
        """Moves the job to history; otherwise it stays live."""
        return self.state in FINISHED

    @property
    def way(self) -> Way:
        """By which statement it is written."""
        if self.next is not None:
            return "continue"
        if self.suspension is not None:
            return "suspend"
        return "finish" if self.finishing else "move"

    @property
    def outcome(self) -> str:
        """How the run finished, as an entry of `FinishedRuns.outcomes`. The output is JSON already."""
        run = self.run
        if self.next is not None:
            return f'"{run.job_id}":["{run.claim_id}",{self.next.to_json()}]'
        if self.state == "completed" and self.error is None:  # the most common case
            if self.output is None or self.output == "null":
                return f'"{run.job_id}":["{run.claim_id}"]'
            return f'"{run.job_id}":["{run.claim_id}",{self.output}]'
        more = json.dumps([self.state, self.error], ensure_ascii=False)[1:]
        return f'"{run.job_id}":["{run.claim_id}",{self.output or "null"},{more}'

    def to_json(self) -> str:
        """One object for a statement about live jobs."""
        run = self.run
        fields = {name: value for name, value in self.to_wire().items() if value is not None and name in _MOVED}
        return json.dumps({"id": run.job_id, "claim_id": run.claim_id, **fields}, ensure_ascii=False)

    def to_wire(self) -> dict[str, Any]:
        """JSON values from which the worker builds the same settlement, with its own run."""
        return {
            "state": self.state, "what": self.what, "output": self.output, "error": self.error, "delay": self.delay,
            "until": self.until, "refund": self.refund, "crash": self.crash,
            "next": None if self.next is None else self.next.to_wire(), "dependants": self.dependants,
        }  # fmt: skip

    @staticmethod
    def from_wire(run: Run, given: dict[str, Any]) -> Settlement:
        following = given["next"]
        return Settlement(run, **{**given, "next": None if following is None else NextLink.from_wire(following)})


_MOVED = frozenset({"state", "what", "error", "delay", "until", "refund", "crash"})
"""What `jobs.move()` reads."""


def finished_runs(group: Sequence[Settlement]) -> FinishedRuns:
    return FinishedRuns(
        ids="{" + ",".join([s.run.job_id for s in group]) + "}",
        claims="{" + ",".join({s.run.claim_id for s in group}) + "}",
        outcomes="{" + ",".join([s.outcome for s in group]) + "}",
    )


def settling(group: Sequence[Settlement], *, skipping: bool = False, xact: str | None = None) -> Query[SettledRow | MovedRow]:
    """The statement that settles these runs, which are all to be settled in the same way."""
    match group[0].way:
        case "finish":
            return jobs.finish(finished_runs(group), skipping=skipping, xact=xact)
        case "continue":
            return chains.continue_jobs(finished_runs(group), skipping=skipping, xact=xact)
        case "move":
            return jobs.move(as_array(group), skipping=skipping, xact=xact)
        case "suspend":
            return workflows.suspend(suspended_runs(group), skipping=skipping)


def as_array(group: Iterable[Settlement]) -> str:
    """JSON: the outcomes of runs whose jobs stay live."""
    return "[" + ",".join([s.to_json() for s in group]) + "]"


def suspended_runs(group: Iterable[Settlement]) -> str:
    """JSON: what workflows wait for."""
    return json.dumps([_suspended(s.run, s.suspension) for s in group if s.suspension is not None], ensure_ascii=False)


def _suspended(run: Run, suspension: Suspension) -> dict[str, Any]:
    return {"id": run.job_id, "claim_id": run.claim_id, "stored": run.stored_steps, **suspension.to_fields()}


def of_result(run: Run, result: Any) -> Settlement:
    """The handler returned."""
    if isinstance(result, Outcome):
        return of_outcome(run, result)
    return Settlement(run, output=run.kind.output.encode(result).decode())


def of_completion(run: Run) -> Settlement:
    """The handler's own session is done, before the handler has returned anything."""
    return Settlement(run)


def of_outcome(run: Run, outcome: Outcome) -> Settlement:
    try:
        decision = outcome.decide()
    except Exception as error:  # noqa: BLE001 - a subclass that did not call its parent's __init__
        return of_error(run, error)
    settlement = _of_decision(run, decision)
    if decision.state == "retry":
        settlement.cause = outcome.__cause__
    return settlement


def _of_decision(run: Run, given: Decision) -> Settlement:
    if given.state == "retry" and run.attempt >= run.job.max_attempts:
        return Settlement(run, "dead_letter", given.what, error=given.error)
    return Settlement(
        run,
        given.state,
        given.what,
        error=given.error,
        delay=given.delay,
        until=given.until,
        refund=given.refund,
        next=given.next,
        suspension=given.suspension,
    )


def of_error(run: Run, error: BaseException, what: str = "failed") -> Settlement:
    """The handler raised: the job is retried later, or dead-lettered for a person to look at."""
    if isinstance(error, ProcessDied):
        return of_crash(run, str(error))
    cut_to_user_code(error)
    policy, remote = run.kind.retry, remote_of(error)
    text = remote.text if remote else describe_exception(error)
    wanted = remote.wanted if remote else worth_another_attempt(run, error)
    if run.attempt >= run.job.max_attempts or not wanted:
        return Settlement(run, "dead_letter", what, error=text, cause=error)
    delay = policy.delay(run.attempt, random.random()).total_seconds()  # noqa: S311
    return Settlement(run, "retry", what, error=text, delay=delay, cause=error)


def worth_another_attempt(run: Run, error: BaseException) -> bool:
    """Not with input that does not fit, and not when a retry would write again what the handler committed by itself."""
    if isinstance(error, InvalidInput) or (isinstance(error, TransactionError) and error.committed):
        return False
    return run.kind.retry.wants(error)


def of_timeout(run: Run, where: BaseException | None = None) -> Settlement:
    """`where`: how the handler ended, which shows what it was doing."""
    error = TimeoutError(f"timed out: {run.kind.name} may run for {timedelta(seconds=run.time_limit or 0)}")
    settlement = of_error(run, error, "timed_out")
    if where is not None:
        cut_to_user_code(where)
    error.__cause__ = where  # for the log; the job keeps the plain sentence
    return settlement


def of_crash(run: Run, cause: str) -> Settlement:
    """Its process died. No attempt is spent, but crashes are counted: after too many, PostgreSQL makes it a dead letter."""
    return Settlement(run, "pending", "crashed", error=cause, refund=1, crash=1)


def requeued(run: Run) -> Settlement:
    """The worker does not run it: the job keeps its position, and no attempt is spent."""
    return Settlement(run, "pending", "requeued", refund=1)
