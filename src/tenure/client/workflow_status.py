"""What is known about a workflow: its job, its steps and what it waits for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tenure.client.status import JobStatus
from tenure.model.states import State
from tenure.model.suspensions import undo_key
from tenure.model.system_data import SystemData
from tenure.store.workflows import AwaitedStep, StepListRow

HIDDEN = frozenset({"status"})
"""What is recorded and is not a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    name: str
    what: str
    """step, transaction, value, sleep, wait, event, call, start, patch, on_rollback, rollback, undo."""
    state: str
    """done, failed, retry, open; ended: it was open or to be tried again when the workflow ended."""
    output: Any
    error: str | None
    attempts: int
    started_at: datetime | None
    ended_at: datetime | None
    due_at: datetime | None
    """When a wait ends."""

    @classmethod
    def from_row(cls, row: StepListRow) -> StepStatus:
        return cls(
            name=row.name, what=row.what, state=row.state, output=None if row.output is None else json.loads(row.output),
            error=row.error, attempts=row.attempts, started_at=row.started_at, ended_at=row.ended_at, due_at=row.due_at,
        )  # fmt: skip

    @classmethod
    def of_wait(cls, wait: AwaitedStep) -> StepStatus:
        """Has no more than what is waited for."""
        return cls(
            name=wait.name, what=wait.what, state=wait.state, output=wait.output, error=None, attempts=1, started_at=None,
            ended_at=None, due_at=wait.due_at,
        )  # fmt: skip

    def ended(self, at: datetime | None) -> StepStatus:
        """As it is once its workflow is over, which waits for nothing any more."""
        return replace(self, state="ended", ended_at=at, due_at=None) if self.state in ("open", "retry") else self

    def to_json(self) -> dict[str, Any]:
        times = {name: _iso(getattr(self, name)) for name in ("started_at", "ended_at", "due_at")}
        return {
            "name": self.name, "what": self.what, "state": self.state, "output": self.output, "error": self.error,
            "attempts": self.attempts, **times,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStatus:
    job: JobStatus
    steps: tuple[StepStatus, ...]
    status: Any
    """What the workflow reported about itself by `ctx.set_status()`."""

    @classmethod
    def of(cls, job: JobStatus, rows: list[StepListRow]) -> WorkflowStatus:
        status = next((row.output for row in rows if row.what == "status"), None)
        steps = tuple(StepStatus.from_row(row) for row in rows if row.what not in HIDDEN)
        if job.state.finished or job.state == State.DEAD_LETTER:
            steps = tuple(step.ended(job.finished_at) for step in steps)
        return cls(job=job, steps=steps, status=None if status is None else json.loads(status))

    @property
    def held(self) -> str | None:
        """Why it cannot continue before a person has decided."""
        return SystemData.of(self.job.system).held if self.job.state == "waiting" else None

    @property
    def rolls_back(self) -> bool:
        """It is live, and has begun to undo what it has done, or is to begin."""
        begun = SystemData.of(self.job.system).canceling is not None or any(step.what == "rollback" for step in self.steps)
        return begun and not self.job.state.finished

    @property
    def to_undo(self) -> tuple[str, ...]:
        """What it has registered to be undone, and has not undone."""
        undone = {step.name for step in self.steps if step.what == "undo" and step.state == "done"}
        registered = (step.name for step in self.steps if step.what == "on_rollback")
        return tuple(name for name in registered if undo_key(name) not in undone)

    @property
    def waits(self) -> tuple[StepStatus, ...]:
        """What it waits for now."""
        return tuple(step for step in self.steps if step.state in ("open", "retry")) if self.job.state == "waiting" else ()

    def to_json(self) -> dict[str, Any]:
        steps = [step.to_json() for step in self.steps]
        return {
            "job": self.job.to_json(),
            "steps": steps,
            "status": self.status,
            "held": self.held,
            "rolls_back": self.rolls_back,
        }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
