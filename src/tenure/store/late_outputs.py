"""The output of a job that its handler completed inside its own transaction, before the handler returned."""

from __future__ import annotations

from typing import NamedTuple

from tenure.store.query import TEXT, Query


class LateOutputRow(NamedTuple):
    output: str | None
    """JSON."""
    owed: bool
    """The output is still to come."""


def set_output(job_id: str, claim_id: str, output: str) -> Query[None]:
    return Query("late_outputs/set_output", None, {"id": job_id, "claim_id": claim_id, "output": output})


def owe_output(claim_id: str, seconds: float) -> Query[str]:
    return Query("late_outputs/owe_output", TEXT, {"claim_id": claim_id, "seconds": seconds})


def drop_owed_output(claim_id: str) -> Query[None]:
    return Query("late_outputs/drop_owed_output", None, {"claim_id": claim_id})


def find_late_output(job_id: str) -> Query[LateOutputRow]:
    return Query("late_outputs/find_late_output", LateOutputRow, {"id": job_id})


def note_late_failure(job_id: str, claim_id: str, error: str) -> Query[None]:
    return Query("late_outputs/note_late_failure", None, {"id": job_id, "claim_id": claim_id, "error": error})
