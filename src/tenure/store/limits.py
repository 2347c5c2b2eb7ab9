"""The statements about limits, and about jobs in limit groups, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from tenure.model.claimed_job import ClaimedJob
from tenure.model.limits import ChangedRules, LimitRules
from tenure.store.claim_replies import ClaimReply, JobPosition, LimitedClaimReply
from tenure.store.json_columns import Json
from tenure.store.query import ALL, INTEGER, Pick, Query, array_literal


class LearnedRow(NamedTuple):
    version: int
    declared: Json[dict[str, LimitRules]]
    """What the code declares, by name."""
    in_force: Json[list[str]]
    """The names of the limits in force."""
    waiting: bool
    """Jobs of these queues wait in limit groups."""
    outdated: bool
    """Some wait in groups of limits that no longer exist."""


class RulesRow(NamedTuple):
    """The rules in force after a change."""

    rules: Json[LimitRules]


class LimitRow(NamedTuple):
    name: str
    rules: Json[LimitRules]
    declared: Json[LimitRules | None]
    override: Json[ChangedRules | None]
    declared_at: datetime | None
    override_at: datetime | None
    override_by: str | None
    running: int
    started: int
    waiting: bool


class LockedRow(NamedTuple):
    """A limit under which there may be something to claim."""

    name: str
    locked: bool


class LimitedClaimRow(NamedTuple):
    reply: Json[LimitedClaimReply | None]
    """In the first row, and only there."""
    job: ClaimedJob
    """In every other row. In the first one, all of its fields are None."""


class AdoptedRow(NamedTuple):
    """The jobs that have their limit group now."""

    reply: Json[ClaimReply]
    jobs: Json[list[JobPosition]]
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class AdoptedHeldRow(NamedTuple):
    changed: int
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


class RegroupedRow(NamedTuple):
    changed: int
    more: bool
    """There may be more."""
    peeked: Json[list[str]]
    """The ids, if `pick.peek`."""


def learn(queues: Iterable[str]) -> Query[LearnedRow]:
    return Query("limits/learn_limits", LearnedRow, {"queues": array_literal(list(queues))})


def declare(limits: Mapping[str, LimitRules]) -> Query[int]:
    declared = [{"name": name, "rules": rules} for name, rules in limits.items()]
    return Query("limits/declare_limits", INTEGER, {"limits": json.dumps(declared)})


def override(name: str, change: ChangedRules, by: str | None) -> Query[RulesRow]:
    return Query("limits/override_limit", RulesRow, {"name": name, "rules": json.dumps(change), "by": by})


def reset(name: str, *, declared: bool = False) -> Query[RulesRow]:
    """With `declared`, what the code declares is removed as well."""
    return Query("limits/reset_limit", RulesRow, {"name": name, "all": declared})


def find() -> Query[LimitRow]:
    return Query("limits/find_limits", LimitRow)


def lock(names: Iterable[str], queues: Iterable[str]) -> Query[LockedRow]:
    return Query("limits/lock_limits", LockedRow, {"names": array_literal(list(names)), "queues": array_literal(list(queues))})


def claim(
    *,
    worker_id: str,
    claim_id: str,
    locked: Iterable[str] | None,
    queues: str,
    steps: int,
    limit: int,
    kinds: str,
    capabilities: str,
    leases: str,
    which: str,
    now: datetime | None = None,
) -> Query[LimitedClaimRow]:
    """To be run in the transaction that ran `lock`. `locked`: the limits it has locked; None: those it has left in a setting."""
    values = {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "locked": None if locked is None else array_literal(list(locked)),
        "queues": queues,
        "steps": steps,
        "limit": limit,
        "kinds": kinds,
        "capabilities": capabilities,
        "leases": leases,
        "which": which,
        "now": now,
    }
    return Query("limits/claim_limited", LimitedClaimRow, values)


def adopt(lanes: str, *, kinds: Iterable[str], queues: Iterable[str], limit: int, pick: Pick = ALL) -> Query[AdoptedRow]:
    values = {"lanes": lanes, "kinds": array_literal(list(kinds)), "queues": array_literal(list(queues)), **pick.values(limit)}
    return Query("limits/adopt_jobs", AdoptedRow, values)


def adopt_held(worker_id: str, *, pick: Pick = ALL) -> Query[AdoptedHeldRow]:
    return Query("limits/adopt_held", AdoptedHeldRow, {"worker_id": worker_id, **pick.unlimited()})


def regroup(queues: Iterable[str], *, limit: int, pick: Pick = ALL) -> Query[RegroupedRow]:
    return Query("limits/regroup_jobs", RegroupedRow, {"queues": array_literal(list(queues)), **pick.values(limit)})
