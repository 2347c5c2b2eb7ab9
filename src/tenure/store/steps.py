"""The statements about steps of workflows, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from tenure.store.claims import HeldJob
from tenure.store.query import OPTIONAL_TEXT, TEXT, Query, array_literal


class StepRow(NamedTuple):
    """A step that is recorded, or for which its workflow waits."""

    job_id: str
    name: str
    number: int
    what: str
    state: str
    output: str | None
    """JSON."""
    error: str | None
    attempts: int
    due_in: float | None
    """Seconds until the wait ends."""
    due_at: str | None
    """The same as a time, in ISO 8601."""


class StepResult(NamedTuple):
    """A step that is done, in a transaction of its own."""

    id: str
    """The workflow's job, and the claim of the run."""
    claim_id: str
    name: str
    number: int
    output: str
    """JSON."""
    attempts: int
    stored: Sequence[str] = ()
    """Steps whose storage was confirmed to the run."""


class RecordedStepsRow(NamedTuple):
    """A run that holds its job."""

    job_id: str
    claim_id: str
    whole: bool
    """The steps that it had stored before are there: those that were given are stored."""


def record(steps: str, *, now: datetime | None = None) -> Query[RecordedStepsRow]:
    return Query("steps/record_steps", RecordedStepsRow, {"steps": steps, "now": now})


def find_lost(stored: Iterable[tuple[str, str]]) -> Query[str]:
    """Of jobs, each with the name of a step that was stored: those of which one is gone."""
    return Query("steps/find_lost_steps", TEXT, {"stored": json.dumps([{"id": id_, "name": name} for id_, name in stored])})


def record_in_transaction(step: StepResult, xact: str) -> Query[str]:
    """Writes nothing unless `xact` is the id of the current transaction. Returns the name of the step."""
    values = {
        "id": step.id, "claim_id": step.claim_id, "name": step.name, "number": step.number, "output": step.output,
        "attempts": step.attempts, "xact": xact, "stored": array_literal(list(step.stored)),
    }  # fmt: skip
    return Query("steps/record_in_transaction", TEXT, values)


def record_rollback(job_id: str, claim_id: str, name: str, number: int, stored: Iterable[str] = ()) -> Query[HeldJob]:
    values = {"id": job_id, "claim_id": claim_id, "name": name, "number": number, "stored": array_literal(list(stored))}
    return Query("steps/record_rollback", HeldJob, values)


def forget(job_id: str, claim_id: str, names: Iterable[str]) -> Query[None]:
    """Of these steps, those that have failed."""
    return Query("steps/forget_steps", None, {"id": job_id, "claim_id": claim_id, "names": array_literal(list(names))})


def find_status(job_id: str) -> Query[str | None]:
    """JSON."""
    return Query("steps/find_status", OPTIONAL_TEXT, {"id": job_id})


def load(job_ids: Iterable[str], *, now: datetime | None = None) -> Query[StepRow]:
    return Query("steps/load_steps", StepRow, {"ids": array_literal(list(job_ids)), "now": now})
