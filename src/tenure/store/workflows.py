"""The statements about workflows, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from tenure.store.jobs import MovedRow
from tenure.store.json_columns import Json
from tenure.store.query import Query, Scalar, array_literal
from tenure.store.statements import SKIPPING

IDS = Scalar[UUID]()


class ResumedRow(NamedTuple):
    state: str
    """Before."""
    moved: bool
    queue: str
    held: bool


class ForkedRow(NamedTuple):
    queue: str
    kind: str
    steps: int
    """How many were copied."""


class StepListRow(NamedTuple):
    """A step for people."""

    name: str
    what: str
    state: str
    output: str | None
    """JSON."""
    error: str | None
    attempts: int
    started_at: datetime | None
    ended_at: datetime | None
    due_at: datetime | None
    fence: int


class AwaitedStep(NamedTuple):
    name: str
    what: str
    state: str
    output: Any
    """Of an event its name and key; of a call its job."""
    due_at: datetime | None


class StepSummaryRow(NamedTuple):
    """How far a workflow is, in a list."""

    job_id: UUID
    steps: int
    done: int
    waits: Json[list[AwaitedStep]]
    """The first three steps that it waits for."""


class ChildStep(NamedTuple):
    """A job that a workflow starts, as a step."""

    name: str
    number: int
    what: str
    state: str


class StartedRow(NamedTuple):
    requested_id: str
    id: str
    """Another one if an earlier job has the key."""


def start_children(
    job_id: str, fence: int, jobs: str, steps: Mapping[str, ChildStep], *, again: bool = False, stored: Iterable[str] = ()
) -> Query[StartedRow]:
    """`steps`: by the id of the child. Returns no rows if one of the steps that are stored is gone."""
    values = {
        "id": job_id, "fence": fence, "jobs": jobs, "steps": json.dumps(steps), "again": again,
        "stored": array_literal(list(stored)),
    }  # fmt: skip
    return Query("workflows/start_children", StartedRow, values)


def suspend(outcomes: str, *, skipping: bool = False, now: datetime | None = None) -> Query[MovedRow]:
    return Query("workflows/suspend_jobs" + SKIPPING * skipping, MovedRow, {"outcomes": outcomes, "now": now})


def resume(job_id: UUID, *, capability: str | None = None, by: str | None = None) -> Query[ResumedRow]:
    return Query("workflows/resume_workflow", ResumedRow, {"id": str(job_id), "capability": capability, "by": by})


def fork(job_id: UUID, new_id: UUID, *, step: str | None = None, by: str | None = None) -> Query[ForkedRow]:
    values = {"id": str(job_id), "new_id": str(new_id), "step": step, "by": by}
    return Query("workflows/fork_workflow", ForkedRow, values)


def list_steps(job_id: UUID) -> Query[StepListRow]:
    return Query("workflows/list_workflow_steps", StepListRow, {"id": str(job_id)})


def list_newest(kinds: Iterable[str], *, queues: Iterable[str] | None, states: Iterable[str] | None, limit: int) -> Query[UUID]:
    """Their ids, newest first."""
    values = {
        "kinds": json.dumps(list(kinds)),
        "queues": None if queues is None else array_literal(sorted(queues)),
        "states": None if states is None else array_literal(sorted(states)),
        "limit": limit,
    }
    return Query("workflows/list_workflows", IDS, values)


def summarize(ids: Iterable[UUID]) -> Query[StepSummaryRow]:
    return Query("workflows/summarize_steps", StepSummaryRow, {"ids": array_literal([str(one) for one in ids])})
