"""The faults that end leases find a worker whose jobs send heartbeats."""

from __future__ import annotations

from psycopg import sql

from tenure.chaos.faults import leases
from tests.store.database import Database


def test_a_worker_is_found_with_the_number_of_its_jobs_that_have_a_lease(dsn):
    with Database(dsn) as database:
        worker, dead = database.worker(), database.worker()
        database.enqueue(*({} for _ in range(3)), {"kind": "plain"}, {"queue": "other"})
        database.claim(worker, kinds=["work", "plain"], leases={"work": 60})
        database.claim(dead, queues=["other"], leases={"work": 60})
        database.condemn(dead)
        assert database.sql(leases.FIND, "seed") == [(worker, 1, 3)]
        database.sql("update tenure.jobs set lease_until = null")
        assert database.sql(leases.FIND, "seed") == []


def test_heartbeats_are_sent_for_the_jobs_of_this_worker_and_no_other(dsn):
    with Database(dsn) as database:
        worker, other = database.worker(), database.worker()
        mine, theirs = database.enqueue({}, {"queue": "other"})
        database.claim(worker, leases={"work": 1})
        database.claim(other, queues=["other"], leases={"work": 1})
        values = {"worker": worker, "seconds": 0.05, "lease": 3600}
        literals = {name: sql.Literal(value) for name, value in values.items()}
        database.connection.execute(sql.SQL(leases.HEARTBEATS).format(**literals))
        extended = "select id::text from tenure.jobs where lease_until > now() + interval '1 minute'"
        assert database.sql(extended) == [(mine,)]
        assert database.job(theirs)["state"] == "running"
