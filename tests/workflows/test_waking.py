"""Waking workflows: locked rows, stale waits, children that ended meanwhile."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from tenure.store import blockers, events, jobs, steps, workflows
from tests.store.database import Database, finished


def suspended(database: Database, **given: Any) -> tuple[str, str]:
    """A workflow that waits, and its worker."""
    worker = database.worker()
    [job] = database.enqueue({})
    claim = database.claim(worker)
    outcome = {"id": job, "claim_id": claim.id, "steps": [], "waits": [], "chains": [], "missing": 0}
    assert database.run(workflows.suspend(json.dumps([outcome | given])))
    return job, worker


def state_of(database: Database, job: str) -> str:
    return str(database.job(job)["state"])


def test_a_workflow_whose_row_is_locked_is_woken_later(database, other):
    job, _ = suspended(database, waits=[{"step": "paid", "event": "paid", "key": ""}])
    term = database.term("resolver")
    with other.connection.transaction():
        other.sql("select 1 from tenure.jobs where id = %s for update", job)
        database.run(events.emit('[{"name": "paid"}]'))
        database.run(events.number(term, limit=10))
        database.run(events.wake(term, limit=10))
        assert state_of(database, job) == "waiting"
    database.run(events.wake(term, limit=10))
    assert state_of(database, job) == "pending"


def test_a_child_that_ended_while_its_workflow_ran_wakes_it_when_it_waits_again(database):
    worker = database.worker()
    [child] = database.enqueue({})
    of_child = database.claim(worker)
    job, worker = suspended(database, chains=[{"id": child, "number": -1}], missing=1)
    term = database.term("resolver")
    round_ = (blockers.arm(term, limit=10), blockers.resolve(term, limit=10), blockers.unblock(term, limit=10))
    for query in round_:
        database.run(query)
    # It is woken by something else, runs, and has looked for its child; then the child ends, and the resolver counts that.
    database.sql("update tenure.jobs set state = 'pending', position = nextval('tenure.job_position') where id = %s", job)
    claim = database.claim(worker)
    assert claim.ids == [job]
    database.run(jobs.finish(finished([(child, of_child.id)])))
    for query in round_:
        database.run(query)
    outcome = {"id": job, "claim_id": claim.id, "steps": [], "waits": [], "chains": [{"id": child, "number": -1}], "missing": 1}
    assert database.run(workflows.suspend(json.dumps([outcome])))
    for query in round_:
        database.run(query)
    assert state_of(database, job) == "pending"


def test_a_stale_wait_of_an_earlier_run_wakes_no_one(database):
    job, _ = suspended(database)
    database.sql(
        "insert into tenure.waits (job_id, step, event, key, fence) values (%s, 'old', 'paid', '', 0), (%s, 'other', 'x', '', 1)",
        job, str(uuid4()),
    )  # fmt: skip
    database.run(events.emit('[{"name": "paid"}]'))
    database.run(events.wake(database.term("resolver"), limit=10))
    assert state_of(database, job) == "waiting"


def test_a_job_is_not_taken_away_while_a_step_of_it_is_being_stored(database, other):
    worker = database.worker()
    [job] = database.enqueue({})
    claim = database.claim(worker)
    step = {"id": job, "claim_id": claim.id, "number": 1, "name": "a", "what": "step", "state": "done", "output": 7, "ran": 0}
    database.condemn(worker)
    with other.connection.transaction():
        assert other.run(steps.record(json.dumps([step])))
        assert database.return_jobs(worker)[0] == 0
    assert database.return_jobs(worker)[0] == 1
    assert [row.output for row in database.fetch(steps.load([job]))] == ["7"]


def test_a_wait_that_is_written_again_while_the_resolver_looks_at_it_is_looked_at_again(database, other):
    waits = [{"step": "paid", "event": "paid", "key": ""}]
    job, worker = suspended(database, waits=waits)
    database.sql("update tenure.jobs set state = 'pending', position = nextval('tenure.job_position') where id = %s", job)
    claim = database.claim(worker)
    term = database.term("resolver")
    database.run(events.emit('[{"name": "paid"}]'))
    database.run(events.number(term, limit=10))
    with ThreadPoolExecutor(1) as threads:
        with other.connection.transaction():
            outcome = {"id": job, "claim_id": claim.id, "steps": [], "waits": waits, "chains": [], "missing": 0}
            assert other.run(workflows.suspend(json.dumps([outcome])))
            looking = threads.submit(database.run, events.wake(term, limit=10))
            waiting = (
                "select count(*) from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock' and query like '%%tenure.waits%%'"
            )
            while not looking.done() and other.sql(waiting) == [(0,)]:
                pass
        looking.result(20)
    database.run(events.wake(term, limit=10))
    assert state_of(database, job) == "pending"


def test_a_child_and_the_step_that_names_it_are_stored_together(database):
    worker = database.worker()
    [job] = database.enqueue({})
    claim = database.claim(worker)
    ids = [str(uuid4()) for _ in range(3)]
    children = json.dumps([{"id": one, "kind": "child", "parent": job, "claim": claim.id} for one in ids])
    steps = {one: workflows.ChildStep(f"child {number}", number, "call", "open") for number, one in enumerate(ids)}
    # The reply was lost, and the statement is sent again.
    for again in (False, True):
        started = database.fetch(workflows.start_children(job, 1, children, steps, again=again))
        assert {row.requested_id: row.id for row in started} == dict(zip(ids, ids, strict=True))
    found = database.sql("select name, number, what, state, output from tenure.steps order by number")
    assert found == [(f"child {number}", number, "call", "open", {"child": one}) for number, one in enumerate(ids)]
    assert database.sql("select count(*) from tenure.jobs where kind = 'child'") == [(3,)]
