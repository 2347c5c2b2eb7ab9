"""How much work waits for which pool."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenure.store.queues import Wants, measure_demand

LOOK = 1000


def wants(pool="default", queues=("default",), kinds=("work",), capabilities=()):
    return Wants(pool=pool, queues=list(queues), kinds=list(kinds), capabilities=list(capabilities))


def measured(database, *pools, look=LOOK, now=None) -> dict[str, int]:
    return {name: jobs for name, jobs, _ in database.run(measure_demand(pools or [wants()], look=look, now=now))}


def test_nothing_waits_in_an_empty_queue(database):
    assert measured(database) == {}


def test_pools_are_distinguished_by_their_queues_in_one_statement(database):
    database.enqueue({}, {}, {"priority": 99}, {"queue": "media"}, {"queue": "nobody"})
    assert measured(database, wants(), wants("media", ["media", "other"])) == {"default": 3, "media": 1}


def test_jobs_that_the_pool_cannot_run_are_not_demand(database):
    database.enqueue({}, {"kind": "strange"}, {"capability": "gpu"})
    assert measured(database, wants(), wants("gpu", capabilities=["gpu"])) == {"default": 1, "gpu": 2}


def test_a_paused_queue_is_not_demand(database):
    database.enqueue({}, {"queue": "mail"})
    database.sql("insert into tenure.queues (name, paused_at) values ('default', now())")
    assert measured(database, wants(queues=["default", "mail"])) == {"default": 1}


def test_jobs_that_run_are_due_later_or_must_run_alone_are_not_demand(database):
    database.enqueue({}, {"delay": 60}, {}, {})
    database.claim(database.worker(), limit=1)
    database.sql("update tenure.jobs set crashes = 2 where id = (select id from tenure.jobs where state = 'pending' limit 1)")
    assert measured(database) == {"default": 1}


def test_it_counts_no_further_than_it_looks(database):
    database.enqueue(*[{}] * 30, *[{"priority": 10}] * 3)
    assert measured(database, look=20) == {"default": 23}


def test_strangers_in_front_are_looked_past(database):
    database.enqueue(*[{"kind": "strange"}] * 30, {}, {})
    assert measured(database, look=100) == {"default": 2}


def test_the_age_is_that_of_the_oldest_that_could_run_since_it_could(database):
    now = datetime.now(UTC)
    database.enqueue({"priority": 90}, {"priority": 5}, {"kind": "strange"}, {"priority": 50})
    database.sql("update tenure.jobs set enqueued_at = %s where priority = 5", now - timedelta(seconds=40))
    database.sql("update tenure.jobs set enqueued_at = %s where kind = 'strange'", now - timedelta(seconds=400))
    # Enqueued long ago, and due only recently.
    due = now - timedelta(hours=1), now - timedelta(seconds=7)
    database.sql("update tenure.jobs set enqueued_at = %s, run_at = %s where kind = 'work' and priority = 50", *due)
    [(_, jobs, age)] = database.run(measure_demand([wants()], look=LOOK, now=now))
    assert (jobs, round(age)) == (3, 40)
    database.sql("delete from tenure.jobs where priority = 5")
    [(_, jobs, age)] = database.run(measure_demand([wants()], look=LOOK, now=now))
    assert (jobs, round(age)) == (2, 7)
