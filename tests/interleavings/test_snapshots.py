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

from tenure.store import jobs, workers
from tenure.store.jobs import HeldJob
from tests.store.clean import bare_dsn, fresh_dsn, shared_dsn
from tests.store.desk import Desk
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
    select count(*) from tenure.jobs j left join tenure.workers w on w.id = j.worker_id
     where j.state = 'running' and w.id is null"""


@dataclass
class Scene:
    worker: str
    job: str
    claim: str | None


def pending(desk: Desk) -> Scene:
    return Scene(desk.worker(), desk.enqueue({})[0], None)


def running(desk: Desk, **leases: float) -> Scene:
    scene = pending(desk)
    claim = desk.claim(scene.worker, leases=leases or None)
    return Scene(scene.worker, scene.job, claim.id)


def leased(desk: Desk) -> Scene:
    return running(desk, work=0.0)


def condemned(desk: Desk) -> Scene:
    scene = running(desk)
    desk.condemn(scene.worker)
    return scene


def due(desk: Desk) -> Scene:
    scene = running(desk)
    desk.run(jobs.move(json.dumps([{"id": scene.job, "claim_id": scene.claim, "state": "retry", "delay": 0}])))
    return scene


def dead(desk: Desk) -> Scene:
    scene = running(desk)
    desk.run(jobs.move(json.dumps([{"id": scene.job, "claim_id": scene.claim, "state": "dead_letter"}])))
    return scene


def outcome(scene: Scene, **more: Any) -> str:
    return json.dumps([{"id": scene.job, "claim_id": scene.claim, **more}])


@dataclass(frozen=True)
class Statement:
    """`run` gives how many rows it says to have changed. `after`: the state of the job once it was changed."""

    name: str
    scene: Callable[[Desk], Scene]
    run: Callable[[Desk, Scene, Any], int]
    after: str | None

    def __str__(self) -> str:
        return self.name


STATEMENTS = [
    Statement("claim_jobs", pending, lambda desk, scene, _: len(desk.claim(scene.worker).ids), "running"),
    Statement("finish_jobs", running, lambda desk, scene, _: len(desk.run(jobs.finish(outcome(scene)))), "completed"),
    Statement("move_jobs", running, lambda desk, scene, _: len(desk.run(jobs.move(outcome(scene, state="pending")))), "pending"),
    Statement("return_jobs", condemned, lambda desk, _scene, _: desk.return_jobs()[0], "pending"),
    Statement(
        "disown_jobs",
        running,
        lambda desk, scene, _: len(desk.run(jobs.disown(scene.worker, [HeldJob(scene.job, scene.claim or "")], ["default"]))),
        "pending",
    ),
    Statement(
        "expire_jobs",
        leased,
        lambda desk, _, term: desk.run(jobs.expire(term, limit=10, max_crashes=workers.MAX_CRASHES))[0][0],
        "pending",
    ),
    Statement("promote_jobs", due, lambda desk, _, term: desk.run(jobs.promote(term, limit=10))[0][1], "pending"),
    Statement(
        "cancel_jobs",
        running,
        lambda desk, scene, _: sum(row[1] for row in desk.run(jobs.cancel([UUID(scene.job)], error="canceled"))),
        "canceled",
    ),
    Statement(
        "delete_jobs",
        running,
        lambda desk, scene, _: sum(row[1] for row in desk.run(jobs.delete([UUID(scene.job)], force=True))),
        None,
    ),
    Statement(
        "retry_job", due, lambda desk, scene, _: sum(row[1] for row in desk.run(jobs.retry(UUID(scene.job), None))), "pending"
    ),
    Statement(
        "replay_jobs", dead, lambda desk, scene, _: sum(row[2] for row in desk.run(jobs.replay([UUID(scene.job)]))), "pending"
    ),
]


@contextmanager
def paused(dsn: str, desk: Desk) -> Iterator[Desk]:
    """A connection whose statements take their snapshot and wait when they have found the first job."""
    role = f"paused_{uuid4().hex[:8]}"
    desk.connection.execute(PAUSE.format(role=role).encode(), prepare=False)
    try:
        with Desk(dsn) as slow:
            slow.sql(f"set role {role}")
            yield slow
    finally:
        desk.connection.execute(f"drop owned by {role}; drop role {role}".encode(), prepare=False)


@pytest.mark.parametrize("statement", STATEMENTS, ids=str)
async def test_a_row_that_changes_under_a_statement_is_not_reported_and_is_found_again(fresh_dsn, statement):
    with Desk(fresh_dsn) as desk, Desk(fresh_dsn) as other, paused(fresh_dsn, desk) as slow:
        scene, term = statement.scene(desk), desk.term("duty")
        before = desk.sql(STATES)
        desk.sql("select pg_advisory_lock(7)")
        running = meanwhile(lambda: statement.run(slow, scene, term))
        await waits_for_a_lock(other)
        other.sql(TOUCH)
        desk.sql("select pg_advisory_unlock(7)")

        changed = [] if statement.after is None else [(statement.after,)]
        reported = running()
        assert desk.sql(STATES) == (changed if reported else before)
        assert reported or statement.run(desk, scene, term) == 1
        assert desk.sql(STATES) == changed
        assert desk.sql(ORPHANS) == [(0,)]
