"""The triggers record schedules and their ticks, jobs and steps, and the ledger returns them."""

from __future__ import annotations

import json

import psycopg
import pytest

from tenure.chaos.ledger import Ledger
from tenure.chaos.recorder import export, install
from tenure.leader.duties.cron import Cron
from tenure.store import jobs, schedules, steps
from tenure.store.link import Link
from tests.leader.plans import T0, at, plan
from tests.store.database import Database


async def test_a_schedule_its_times_and_its_queue_are_recorded(dsn, database_target, tmp_path):
    link = Link(database_target, "leader")
    with psycopg.connect(dsn, autocommit=True) as connection, Database(dsn) as database:
        install(connection)
        plan(database, overlap="queue", catch_up="all", catch_up_limit=2)
        term = database.term("cron")
        await Cron(60.0).run_once(link, term, now=at(180))
        database.sql("delete from tenure.jobs")
        database.run(schedules.release_ticks(term, limit=10, now=at(181)))
        database.run(schedules.clean_ticks(term, limit=10, keep=0.0, now=at(500)))
        database.run(schedules.delete("s"))
        export(connection, Ledger(tmp_path))
    await link.close()
    ticks, plans, moves = (
        list(lines()) for lines in (Ledger(tmp_path).ticks, Ledger(tmp_path).schedules, Ledger(tmp_path).moves)
    )
    found = {(tick.planned - T0.timestamp(), tick.times, tick.was, tick.outcome) for tick in ticks}
    assert found == {
        (60.0, 1, None, "missed"),
        (120.0, 1, None, "enqueued"),
        (180.0, 1, None, "queued"),
        (180.0, 1, "queued", "enqueued"),
        (60.0, 1, "missed", None),
        (120.0, 1, "enqueued", None),
    }
    assert len({tick.xact for tick in ticks}) == 3
    assert all(tick.began <= tick.at for tick in ticks)
    inserted = {move.job for move in moves if move.was is None}
    assert {tick.job for tick in ticks if tick.outcome == "enqueued"} == inserted
    assert (plans[0].was_since, plans[0].every, plans[0].overlap, plans[0].catch_up_limit) == (None, 60.0, "queue", 2)
    assert [plan.since for plan in plans][-2:] == [at(180).timestamp(), None]


def test_every_move_of_a_run_is_recorded_with_its_worker(dsn, tmp_path):
    """The worker is stored in the row of the claim, which the same statement writes."""
    with psycopg.connect(dsn, autocommit=True) as connection, Database(dsn) as database:
        install(connection)
        worker = database.worker()
        database.enqueue({})
        database.run(jobs.move(database.claim(worker).outcomes(state="pending", refund=1)))
        database.run(jobs.finish(database.claim(worker).finished()))
        export(connection, Ledger(tmp_path))
    moves = [(move.relation, move.was, move.state, move.worker) for move in Ledger(tmp_path).moves()]
    assert moves == [
        ("jobs", None, "pending", None),
        ("jobs", "pending", "running", worker),
        ("jobs", "running", "pending", None),
        ("jobs", "pending", "running", worker),
        ("jobs", "running", None, worker),
        ("history", None, "completed", worker),
    ]


def test_every_change_of_a_step_is_recorded(dsn, tmp_path):
    with psycopg.connect(dsn, autocommit=True) as connection, Database(dsn) as database:
        install(connection)
        [job_id] = database.enqueue({})
        claim = database.claim(database.worker())
        row = {"id": job_id, "claim_id": claim.id, "what": "step", "attempts": 1, "ran": 0}

        def record(*changes: dict[str, object]) -> None:
            database.run(steps.record(json.dumps([row | change for change in changes])))

        record({"number": 1, "name": "a", "state": "done", "output": "x"}, {"number": 2, "name": "b", "state": "retry"})
        record({"number": 2, "name": "b", "state": "failed"}, {"number": 1, "name": "a", "state": "done", "output": "y"})
        database.run(steps.forget(job_id, claim.id, ["b"]))
        export(connection, Ledger(tmp_path))
    changes = [(step.step, step.was, step.state, step.fence, step.output) for step in Ledger(tmp_path).steps()]
    assert changes == [
        ("a", None, "done", 1, "x"),
        ("b", None, "retry", 1, None),
        ("b", "retry", "failed", 1, None),
        ("b", "failed", None, 1, None),
    ]


def test_starts_under_a_rate_are_accepted_unless_they_are_refused(dsn):
    """The trigger on tenure.starts once read columns of tenure.jobs, so that every claim under a rate was refused."""
    start = "insert into tenure.starts values ('kind:a', now() + make_interval(secs => %s), now(), now(), 1)"
    with psycopg.connect(dsn, autocommit=True) as connection:
        install(connection)
        connection.execute(start, [0])
        connection.execute("insert into chaos.refusals values ('start', 'P0001', now() + interval '1 hour')")
        with pytest.raises(psycopg.errors.RaiseException, match="refuses to start this row"):
            connection.execute(start, [1])
        assert connection.execute("select count(*) from tenure.starts").fetchone() == (1,)
