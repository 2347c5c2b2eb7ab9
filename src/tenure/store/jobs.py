"""The statements about jobs, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from tenure.store.query import Query, array_literal
from tenure.store.statements import SKIPPING


class HeldJob(NamedTuple):
    """A job under a certain claim."""

    job_id: str
    claim_id: str


class PeekedJob(NamedTuple):
    """A pending job that a claim would take."""

    job_id: str
    kind: str
    queue: str
    priority: int
    position: int


def enqueue(jobs: str, *, again: bool = False, borrowed: bool = False) -> Query:
    return Query("jobs/enqueue_jobs", {"jobs": jobs, "again": again, "borrowed": borrowed})


def enqueue_borrowed(jobs: str, channel: str, words: str) -> Query:
    return Query("jobs/enqueue_borrowed", {"jobs": jobs, "channel": channel, "payloads": words})


def claim(
    *,
    worker_id: str,
    claim_id: str,
    lanes: str,
    limit: int,
    kinds: str,
    capabilities: str,
    leases: str,
    which: str,
    limits: int = 0,
    now: datetime | None = None,
) -> Query:
    """`limits` is the version of the limits that the worker knows."""
    values = {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "lanes": lanes,
        "limit": limit,
        "kinds": kinds,
        "capabilities": capabilities,
        "leases": leases,
        "which": which,
        "limits": limits,
        "now": now,
    }
    return Query("jobs/claim_jobs", values)


def list_held(worker_id: str) -> Query:
    return Query("jobs/list_held_jobs", {"worker_id": worker_id})


def disown(worker_id: str, runs: Iterable[HeldJob], queues: Iterable[str]) -> Query:
    held = json.dumps([{"id": run.job_id, "claim_id": run.claim_id} for run in runs])
    return Query("jobs/disown_jobs", {"worker_id": worker_id, "runs": held, "queues": array_literal(list(queues))})


def finish(outcomes: str, *, skipping: bool = False, xact: str | None = None, now: datetime | None = None) -> Query:
    """`xact`: write nothing unless this is the id of the current transaction. `skipping`: leave out jobs whose row another
    transaction has locked. Otherwise all wait for it; which is faster while nobody does that."""
    return Query("jobs/finish_jobs" + SKIPPING * skipping, {"outcomes": outcomes, "xact": xact, "now": now})


def move(outcomes: str, *, skipping: bool = False, xact: str | None = None, now: datetime | None = None) -> Query:
    return Query("jobs/move_jobs" + SKIPPING * skipping, {"outcomes": outcomes, "xact": xact, "now": now})


def enter_transaction(job_id: str, claim_id: str) -> Query:
    return Query("jobs/enter_transaction", {"id": job_id, "claim_id": claim_id})


def check_transaction(xact: str) -> Query:
    return Query("jobs/check_transaction", {"xact": xact})


def note(notes: str, keep_lines: int, *, now: datetime | None = None) -> Query:
    return Query("jobs/note_runs", {"notes": notes, "keep_lines": keep_lines, "now": now})


def set_output(job_id: str, claim_id: str, output: str) -> Query:
    return Query("jobs/set_output", {"id": job_id, "claim_id": claim_id, "output": output})


def owe_output(claim_id: str, seconds: float) -> Query:
    return Query("jobs/owe_output", {"claim_id": claim_id, "seconds": seconds})


def drop_owed_output(claim_id: str) -> Query:
    return Query("jobs/drop_owed_output", {"claim_id": claim_id})


def find_late_output(job_id: str) -> Query:
    return Query("jobs/find_late_output", {"id": job_id})


def note_late_failure(job_id: str, claim_id: str, error: str) -> Query:
    return Query("jobs/note_late_failure", {"id": job_id, "claim_id": claim_id, "error": error})


def watch(job_id: str, seconds: float) -> Query:
    return Query("jobs/watch_job", {"id": job_id, "seconds": seconds})


def find_progress(job_id: str) -> Query:
    return Query("jobs/find_progress", {"id": job_id})


def notify(channel: str, words: str) -> Query:
    return Query("queues/notify", {"channel": channel, "payloads": words})


def notify_after(channel: str, words: str) -> Query:
    """Right after a commit, on the connection of that."""
    return Query("queues/notify_after", {"channel": channel, "payloads": words})


def find_settled(outcomes: str) -> Query:
    return Query("jobs/find_settled", {"outcomes": outcomes})


def check_claims(runs: str) -> Query:
    return Query("jobs/check_claims", {"runs": runs})


def find(job_id: str) -> Query:
    return Query("jobs/find_job", {"id": job_id})


def survey(queues: str, kinds: str) -> Query:
    return Query("queues/survey_queues", {"queues": queues, "kinds": kinds})


def count_states(since: str) -> Query:
    return Query("jobs/count_states", {"since": since})
