"""Undoing what a workflow has done: in reverse order, each once, also after a crash."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenure.flow.step_functions import StepCall, StepFunction
from tenure.flow.step_runner import StepOptions, StepRunner
from tenure.model.failures import Failure
from tenure.model.outcomes import Cancel, Fail, Outcome
from tenure.model.payloads import Json, describe_exception
from tenure.model.retries import Retry
from tenure.model.states import FINISHED, State
from tenure.model.suspensions import undo_key
from tenure.store.steps import StepRow
from tenure.worker.run import settlement as settlements
from tenure.worker.run.run import Run

MARK = "(rollback)"
"""The name under which it is recorded that the workflow is rolled back."""

PERSISTENT = Retry(max_attempts=20)
"""How an undo is tried again if nothing else is given."""


class Undo(NamedTuple):
    key: str
    function: StepFunction
    call: StepCall
    options: StepOptions


@dataclass(frozen=True, slots=True)
class RollbackEnding:
    """How the workflow ends once it is rolled back."""

    state: str
    reason: str

    @classmethod
    def of_error(cls, error: BaseException) -> RollbackEnding:
        if isinstance(error, Outcome):
            decision = error.decide()
            return cls(decision.state, decision.error or "")
        return cls("failed", str(Failure.read(describe_exception(error))))

    @classmethod
    def of_row(cls, row: StepRow) -> RollbackEnding:
        return cls(**json.loads(row.output or "{}"))

    def to_json(self) -> Json:
        return json.dumps({"state": self.state, "reason": self.reason})

    @property
    def outcome(self) -> Outcome:
        return Cancel(self.reason) if self.state == "canceled" else Fail(self.reason)


def is_final(run: Run, error: BaseException) -> bool:
    """The workflow has failed or is canceled, and does not get another attempt."""
    if isinstance(error, Outcome):
        return error.decide().state in FINISHED - {State.COMPLETED}
    return settlements.of_error(run, error).state == "dead_letter"


async def undo_all(steps: StepRunner, undos: list[Undo]) -> Any:
    """Each one is a step of its own, so that none is undone twice."""
    for key, function, call, options in reversed(undos):
        await steps.run(undo_key(key), function, call, options, "undo")
