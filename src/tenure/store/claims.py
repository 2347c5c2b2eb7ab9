"""The statements about claims: which jobs workers hold, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal, NamedTuple

from tenure.store.json_columns import Json
from tenure.store.query import ALL, Pick, Query, array_literal


class HeldJob(NamedTuple):
    """A job under a certain claim."""

    job_id: str
    claim_id: str


class DisownedRow(NamedTuple):
    """A job that was requeued because its worker does not run it."""

    id: str
    kind: str


class ForgottenRow(NamedTuple):
    """What a deletion of ended claims did and left, and which claims it would delete."""

    forgotten: int
    others_left: bool
    """The worker has other claims than its current ones: jobs are held under them, or the row is locked or refused."""
    peeked: Json[list[str]]


class LostClaimRow(NamedTuple):
    """A claim that is not the current one of its job any more."""

    id: str
    claim_id: str
    reason: Literal["taken_by_another_worker", "already_completed", "canceled", "not_found"]


def list_held(worker_id: str) -> Query[HeldJob]:
    return Query("claims/list_held_jobs", HeldJob, {"worker_id": worker_id})


def disown(runs: Iterable[HeldJob], queues: Iterable[str]) -> Query[DisownedRow]:
    held = json.dumps([{"id": run.job_id, "claim_id": run.claim_id} for run in runs])
    return Query("claims/disown_jobs", DisownedRow, {"runs": held, "queues": array_literal(list(queues))})


def forget(worker_id: str, current: Iterable[str], *, pick: Pick = ALL) -> Query[ForgottenRow]:
    """`current`: the claims that the worker still works on."""
    values = {"worker_id": worker_id, "current": array_literal(list(current)), **pick.unlimited()}
    return Query("claims/forget_claims", ForgottenRow, values)


def check(runs: str) -> Query[LostClaimRow]:
    return Query("claims/check_claims", LostClaimRow, {"runs": runs})
