"""Jobs that a test writes by hand, as the schema demands: the position fits the state, and a running job has a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

Sql = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with `%s` values: `Database.sql`, or the fixture `sql`."""

POSITIONS = {"scheduled": 0, "retry": 0, "dead_letter": -1, "blocked": -2, "waiting": -2}
"""Of jobs that have no place in their queue."""

NEXT = "nextval('tenure.job_position')"


def position_of(state: str, queued: str = NEXT) -> str:
    """SQL: the position of a job whose state is this SQL expression. `queued`: of one that is pending or running."""
    cases = " ".join(f"when '{known}' then {position}" for known, position in POSITIONS.items())
    return f"case {state} {cases} else {queued} end"


def forge_job(sql: Sql, state: str, *, worker_id: str | None = None, claim_id: str | None = None, **columns: Any) -> str:
    """Inserts a job, and returns its id. If it runs, it is held by this worker under this claim, or by an unknown one."""
    job_id = str(columns.pop("id", uuid4()))
    if state == "running":
        columns["claim_id"] = forge_claim(sql, worker_id, [job_id], claim_id=claim_id)
    if POSITIONS.get(state) == 0:
        columns.setdefault("run_at", "now")
    columns = {"id": job_id, "state": state, "kind": "work", **columns}
    places = ", ".join(["%s"] * len(columns))
    sql(
        f"insert into tenure.jobs (position, {', '.join(columns)}) values ({position_of('%s::text')}, {places})",
        *(state, *columns.values()),
    )
    return job_id


def forge_claim(sql: Sql, worker_id: str | None, job_ids: Iterable[str], *, claim_id: str | None = None) -> str:
    """The row by which the jobs of a worker are found. One claim may have several here, so that it can be forged job by job."""
    claim_id = claim_id or str(uuid4())
    sql(
        "insert into tenure.claims as c (id, worker_id, job_ids) values (%s, %s, %s::uuid[])"
        " on conflict (id) do update set job_ids = c.job_ids || excluded.job_ids",
        *(claim_id, worker_id or str(uuid4()), list(map(str, job_ids))),
    )
    return claim_id


def change_state(sql: Sql, state: str, *job_ids: str, **columns: Any) -> None:
    """Moves these jobs, or all, to a state in which no worker holds them."""
    assert state != "running", "use forge_job or take_over"
    if POSITIONS.get(state) != 0:
        columns.setdefault("run_at", None)
    written = "".join(f", {name} = %s" for name in columns)
    due = ", run_at = coalesce(run_at, now())" if "run_at" not in columns else ""
    sql(
        "update tenure.jobs set state = %s, claim_id = null, held_group = null, lease_until = null,"
        f" position = {position_of('%s::text', f'case when position > 0 then position else {NEXT} end')}{due}{written}"
        " where %s::uuid[] is null or id = any (%s::uuid[])",
        *(state, state, *columns.values(), *[list(map(str, job_ids)) or None] * 2),
    )


def take_over(sql: Sql, *job_ids: str, worker_id: str | None = None) -> None:
    """Another worker, which lives, holds these jobs, or all that run, under a claim of its own."""
    claim_id = str(uuid4())
    if worker_id is None:
        worker_id = str(uuid4())
        sql(
            "insert into tenure.workers"
            " (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, expires_at)"
            " values (%s, %s, 'elsewhere', 1, '[]', '[]', '[]', 10, '0', now() + interval '1 hour')",
            *(worker_id, worker_id),
        )
    taken = sql(
        "update tenure.jobs set claim_id = %s, fence = fence + 1"
        " where claim_id is not null and (%s::uuid[] is null or id = any (%s::uuid[])) returning id",
        *(claim_id, *[list(map(str, job_ids)) or None] * 2),
    )
    forge_claim(sql, worker_id, [job_id for (job_id,) in taken], claim_id=claim_id)
