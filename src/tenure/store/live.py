"""The statements that follow jobs for the viewers of a process, as values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.jobs import JobRow
from tenure.store.query import Query, array_literal


class VersionRow(NamedTuple):
    """What changes about a job while it lives. Two equal rows: nothing has changed."""

    id: UUID
    state: str
    attempt: int
    fence: int
    run_at: datetime | None
    progress_percent: float
    progress_message: str | None


class ShownRow(NamedTuple):
    job: JobRow
    omitted: bool
    """Its input or output is too large, and None instead."""


def find_shown(ids: Iterable[UUID], most: int) -> Query[ShownRow]:
    """`most`: bytes of an input or output."""
    return Query("live/find_shown", ShownRow, {"ids": array_literal([str(job_id) for job_id in ids]), "most": most})


def find_versions(ids: Iterable[UUID]) -> Query[VersionRow]:
    return Query("live/find_versions", VersionRow, {"ids": array_literal([str(job_id) for job_id in ids])})


def watch(ids: Iterable[UUID], seconds: float) -> Query[None]:
    return Query("live/watch_jobs", None, {"ids": array_literal([str(job_id) for job_id in ids]), "seconds": seconds})
