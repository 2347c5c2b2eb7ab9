"""A row that changes between the snapshot of a statement and its lock is found by the next try, and nothing is reported before.

Most of our statements lock rows and then change them by their place. A row that another session has changed in between is locked
in its new version, which the statement's own snapshot does not show: the change by place misses it. Such a statement must not
report the row as changed, must leave nothing half done, and must do its work when it is repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from tenure.store import claims, jobs, workers
from tenure.store.claims import HeldJob
from tests.store.clean import bare_dsn, fresh_dsn, shared_dsn
from tests.store.database import Database, finished
from tests.store.locks import meanwhile, waits_for_a_lock

__all__ = ["bare_dsn", "fresh_dsn", "shared_dsn"]

PAUSE = """
    create role {role};
    grant usage on schema tenure to {role};
    grant all on all tables in schema tenure to {role};
    grant all on all sequences in schema tenure to {role};
    create function public.pause() returns boolean language plpgsql
        as 'begin perform pg_advisory_xact_lock_shared(7); return true; end';
    alter table tenure.jobs enable row level security;
    create policy pause on tenure.jobs using (public.pause());"""

# What any other writer does to a row that it leaves in its state: a heartbeat, a new limit.
TOUCH = "update tenure.jobs set error = error"
STATES = "select state from tenure.all_jobs order by state"
ORPHANS = """
    select count(*)
      from tenure.jobs j left join tenure.held_jobs h on h.id = j.id left join tenure.workers w on w.id = h.worker_id
     where j.state = 'running' and w.id is null"""


@dataclass
class Prepared:
    worker: str
    job: str
    claim: str | None


def pending(database: Database) -> Prepared:
    return Prepared(database.worker(), database.enqueue({})[0], None)


def running(database: Database, **leases: float) -> Prepared:
    prepared = pending(database)
    claim = database.claim(prepared.worker, leases=leases or None)
    return Prepared(prepared.worker, prepared.job, claim.id)


def leased(database: Database) -> Prepared:
    return running(database, work=0.0)


def condemned(database: Database) -> Prepared:
    prepared = running(database)
    database.condemn(prepared.worker)
    return prepared


def due(database: Database) -> Prepared:
    prepared = running(database)
    database.run(jobs.move(json.dumps([{"id": prepared.job, "claim_id": prepared.claim, "state": "retry", "delay": 0}])))
    return prepared


def dead(database: Database) -> Prepared:
    prepared = running(database)
    database.run(jobs.move(json.dumps([{"id": prepared.job, "claim_id": prepared.claim, "state": "dead_letter"}])))
    return prepared


def outcome(prepared: Prepared, **more: Any) -> str:
    return json.dumps([{"id": prepared.job, "claim_id": prepared.claim, **more}])


@dataclass(frozen=True)
class Statement:
    """`run` gives how many rows it says to have changed. `after`: the state of the job once it was changed."""

    name: str
    prepared: Callable[[Database], Prepared]
    run: Callable[[Database, Prepared, Any], int]
    after: str | None

    def __str__(self) -> str:
        return self.name


STATEMENTS = [
    Statement("claim_jobs", pending, lambda database, prepared, _: len(database.claim(prepared.worker).ids), "running"),
    Statement(
        "finish_jobs",
        running,
        lambda database, prepared, _: len(database.run(jobs.finish(finished([(prepared.job, prepared.claim)])))),
        "completed",
    ),
    Statement(
        "move_jobs",
        running,
        lambda database, prepared, _: len(database.run(jobs.move(outcome(prepared, state="pending")))),
        "pending",
    ),
    Statement("return_jobs", condemned, lambda database, _scene, _: database.return_jobs()[0], "pending"),
    Statement(
        "disown_jobs",
        running,
        lambda database, prepared, _: len(
            database.run(claims.disown([HeldJob(prepared.job, prepared.claim or "")], ["default"]))
        ),
        "pending",
    ),
    Statement(
        "expire_jobs",
        leased,
        lambda database, _, term: database.run(jobs.expire(term, limit=10, max_crashes=workers.MAX_CRASHES))[0][0],
        "pending",
    ),
    Statement("promote_jobs", due, lambda database, _, term: database.run(jobs.promote(term, limit=10))[0][1], "pending"),
    Statement(
        "cancel_jobs",
        running,
        lambda database, prepared, _: sum(row[1] for row in database.run(jobs.cancel([UUID(prepared.job)], error="canceled"))),
        "canceled",
    ),
    Statement(
        "delete_jobs",
        running,
        lambda database, prepared, _: sum(row[1] for row in database.run(jobs.delete([UUID(prepared.job)], force=True))),
        None,
    ),
    Statement(
        "retry_job",
        due,
        lambda database, prepared, _: sum(row[1] for row in database.run(jobs.retry(UUID(prepared.job), None))),
        "pending",
    ),
    Statement(
        "replay_jobs",
        dead,
        lambda database, prepared, _: sum(row[2] for row in database.run(jobs.replay([UUID(prepared.job)]))),
        "pending",
    ),
]


@contextmanager
def paused(dsn: str, database: Database) -> Iterator[Database]:
    """A connection whose statements take their snapshot and wait when they have found the first job."""
    role = f"paused_{uuid4().hex[:8]}"
    database.connection.execute(PAUSE.format(role=role).encode(), prepare=False)
    try:
        with Database(dsn) as slow:
            slow.sql(f"set role {role}")
            yield slow
    finally:
        database.connection.execute(f"drop owned by {role}; drop role {role}".encode(), prepare=False)


@pytest.mark.parametrize("statement", STATEMENTS, ids=str)
async def test_a_row_that_changes_under_a_statement_is_not_reported_and_is_found_again(fresh_dsn, statement):
    with Database(fresh_dsn) as database, Database(fresh_dsn) as other, paused(fresh_dsn, database) as slow:
        prepared, term = statement.prepared(database), database.term("duty")
        before = database.sql(STATES)
        database.sql("select pg_advisory_lock(7)")
        running = meanwhile(lambda: statement.run(slow, prepared, term))
        await waits_for_a_lock(other)
        other.sql(TOUCH)
        database.sql("select pg_advisory_unlock(7)")

        changed = [] if statement.after is None else [(statement.after,)]
        reported = running()
        assert database.sql(STATES) == (changed if reported else before)
        assert reported or statement.run(database, prepared, term) == 1
        assert database.sql(STATES) == changed
        assert database.sql(ORPHANS) == [(0,)]
