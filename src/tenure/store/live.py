"""The statements that follow jobs for the viewers of a process, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.jobs import JobRow
from tenure.store.query import Query, Scalar, array_literal

IDS = Scalar[UUID]()


class VersionRow(NamedTuple):
    """What changes about a job while it lives. Two equal rows: nothing has changed."""

    id: UUID
    state: str
    attempt: int
    fence: int
    run_at: datetime | None
    progress_percent: float
    progress_message: str | None


class StepVersionRow(NamedTuple):
    """What changes about the steps of a workflow."""

    job_id: UUID
    steps: int
    newest: int


class ShownRow(NamedTuple):
    job: JobRow
    omitted: bool
    """Its input, output, auth, meta or headers are too large, and left out."""


def find_shown(ids: Iterable[UUID], most: int) -> Query[ShownRow]:
    """`most`: bytes of an input, output, auth, meta or system data. 0: without any of them."""
    return Query("live/find_shown", ShownRow, {"ids": array_literal([str(job_id) for job_id in ids]), "most": most})


def find_versions(ids: Iterable[UUID]) -> Query[VersionRow]:
    return Query("live/find_versions", VersionRow, {"ids": array_literal([str(job_id) for job_id in ids])})


def watch(ids: Iterable[UUID], seconds: float) -> Query[UUID]:
    """Returns the ids of those that are live."""
    return Query("live/watch_jobs", IDS, {"ids": array_literal([str(job_id) for job_id in ids]), "seconds": seconds})


def find_step_versions(ids: Iterable[UUID]) -> Query[StepVersionRow]:
    return Query("live/find_step_versions", StepVersionRow, {"ids": array_literal([str(job_id) for job_id in ids])})
