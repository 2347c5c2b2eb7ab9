"""Statements of the leader whose snapshot is older than what they change: they had to wait for a lock, and the world went on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.store import blockers, cleaning, jobs, workflows
from tenure.store.query import Query
from tests.store.database import Database, finished

IN_LINE = """select count(*) from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock' and query like '%tenure.leases%'"""

Delayed = Callable[[str, Query[Any]], Any]


@pytest.fixture
def delayed(dsn: str, database: Database, other: Database) -> Iterator[Delayed]:
    """Begins a statement of a duty, and lets it wait for the row of its lease until the block ends."""
    with Database(dsn) as leader, ThreadPoolExecutor(1) as threads:

        @contextmanager
        def begun(duty: str, query: Query[Any]) -> Iterator[Future[Any]]:
            with other.connection.transaction():
                other.sql("select from tenure.leases where name = %s for update", duty)
                running = threads.submit(leader.run, query)
                while database.sql(IN_LINE) == [(0,)]:
                    assert not running.done()
                yield running
            running.result(20)

        yield begun


def claim(database: Database, job: str) -> str:
    claimed = database.claim(database.worker())
    assert claimed.ids == [job]
    return claimed.id


def round_of(database: Database, term: Any) -> None:
    for make in (blockers.arm, blockers.resolve, blockers.unblock, blockers.end_blocked):
        database.run(make(term, limit=10))


def waiting_workflow(database: Database, term: Any) -> tuple[str, str, str, str]:
    """A workflow that waited for a child, was woken by something else, and runs. The child ends meanwhile."""
    [child] = database.enqueue({})
    of_child = claim(database, child)
    [job] = database.enqueue({})
    assert database.run(suspend(job, claim(database, job), child))
    round_of(database, term)
    database.sql("update tenure.jobs set state = 'pending', position = nextval('tenure.job_position') where id = %s", job)
    return job, claim(database, job), child, of_child


def suspend(job: str, claim_id: str, child: str) -> Query[Any]:
    chains = [{"id": child, "number": -1}]
    return workflows.suspend(
        json.dumps([{"id": job, "claim_id": claim_id, "steps": [], "waits": [], "chains": chains, "missing": 1}])
    )


def test_an_ending_that_is_written_again_is_counted_with_its_output(database, delayed):
    term = database.term("resolver")
    [first] = database.enqueue({})
    [second] = database.enqueue({"after": [first], "on_failure": "wait"})
    database.run(blockers.arm(term, limit=10))
    dead = [{"id": first, "claim_id": claim(database, first), "state": "dead_letter", "error": "broken"}]
    database.run(jobs.move(json.dumps(dead)))
    with delayed("resolver", blockers.resolve(term, limit=10)):
        database.run(jobs.replay([first]))
        assert len(database.run(jobs.finish(finished([(first, claim(database, first))], output=7)))) == 1
    # The statement saw the first end, and could not see the output of the second: it is left for the next round.
    [row] = database.fetch(blockers.find(second, most=1))
    assert (row.ended, row.output) == (False, None)
    for _ in range(2):
        round_of(database, term)
    assert database.job(second)["state"] == "pending"
    [row] = database.fetch(blockers.find(second, most=1))
    assert (row.state, row.output) == ("completed", "7")


def test_a_workflow_that_waits_again_while_the_end_of_its_child_is_counted_is_woken(database, delayed):
    term = database.term("resolver")
    job, claim_id, child, of_child = waiting_workflow(database, term)
    # It was woken by the end of another child.
    database.sql("update tenure.blocked set missing = null")
    database.run(jobs.finish(finished([(child, of_child)])))
    with delayed("resolver", blockers.resolve(term, limit=10)):
        assert database.run(suspend(job, claim_id, child))
    for _ in range(3):
        round_of(database, term)
    assert database.job(job)["state"] == "pending"


def test_a_workflow_that_waits_again_while_its_last_wait_is_put_away_is_woken(database, delayed):
    term = database.term("resolver")
    job, claim_id, child, of_child = waiting_workflow(database, term)
    database.run(jobs.finish(finished([(child, of_child)])))
    database.run(blockers.resolve(term, limit=10))
    assert database.sql("select missing from tenure.blocked") == [(0,)]
    with delayed("resolver", blockers.end_blocked(term, limit=10)):
        assert database.run(suspend(job, claim_id, child))
    for _ in range(3):
        round_of(database, term)
    assert database.job(job)["state"] == "pending"


def test_an_ending_that_a_job_begins_to_wait_for_is_not_cleaned_away(database, delayed):
    term, cleaner = database.term("resolver"), database.term("cleaner")
    [first] = database.enqueue({"dependants": True})
    database.run(jobs.finish(finished([(first, claim(database, first))], output=7)))
    round_of(database, term)
    database.sql("update tenure.chain_endings set ended_at = now() - interval '2 hours'")
    with delayed("cleaner", cleaning.clean_endings(cleaner, limit=10, after=None)):
        [second] = database.enqueue({"after": [first]})
        database.run(blockers.arm(term, limit=10))
    for _ in range(2):
        round_of(database, term)
    assert database.job(second)["state"] == "pending"
    [row] = database.fetch(blockers.find(second, most=1))
    assert (row.state, row.output) == ("completed", "7")
