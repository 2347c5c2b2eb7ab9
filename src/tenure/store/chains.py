"""The statements about chains, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from tenure.store.jobs import EndedRow, FinishedRuns, SettledRow
from tenure.store.query import TEXT, Query, array_literal
from tenure.store.statements import SKIPPING


class TailRow(NamedTuple):
    id: UUID | None
    """None: no link of the chain exists."""


def find_tail(chain_id: str) -> Query[TailRow]:
    return Query("chains/find_tail", TailRow, {"chain_id": chain_id})


def find_chain(job_id: str) -> Query[str]:
    """The chain that a live job is a link of."""
    return Query("chains/find_chain", TEXT, {"id": job_id})


class LinkRow(NamedTuple):
    chain_id: UUID
    id: UUID
    kind: str
    number: int
    """From 1."""
    live: bool


class DependantRow(NamedTuple):
    """A live job that waits for a chain."""

    chain_id: UUID
    """Its own chain."""
    job_id: UUID


def find_links(chain_ids: Iterable[UUID], *, most: int) -> Query[LinkRow]:
    return Query("chains/find_links", LinkRow, {"chain_ids": _ids(chain_ids), "most": most})


def find_dependants(chain_ids: Iterable[UUID]) -> Query[DependantRow]:
    return Query("chains/find_dependants", DependantRow, {"chain_ids": _ids(chain_ids)})


def complete(outputs: Mapping[UUID, str], *, by: str | None, now: datetime | None = None) -> Query[EndedRow]:
    """By job: its output as JSON."""
    texts = "{" + ",".join(f'"{job_id}":{output}' for job_id, output in outputs.items()) + "}"
    return Query("chains/complete_links", EndedRow, {"ids": _ids(outputs), "outputs": texts, "by": by, "now": now})


def _ids(ids: Iterable[UUID]) -> str:
    return array_literal([str(one) for one in ids])


def continue_jobs(
    runs: FinishedRuns, *, skipping: bool = False, xact: str | None = None, now: datetime | None = None
) -> Query[SettledRow]:
    """`runs.outcomes`: by job, [claim, next link]. Otherwise as `jobs.finish()`."""
    return Query("chains/continue_jobs" + SKIPPING * skipping, SettledRow, {**runs._asdict(), "xact": xact, "now": now})
