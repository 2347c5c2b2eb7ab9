"""The history of the fleet, which the leader records once a minute."""

from __future__ import annotations

import json

from tenure.store import cleaning, stats


def record(database) -> None:
    [(holds, next_in)] = database.run(stats.record_fleet(database.term("rollup"), 100))
    assert holds
    assert 0 < next_in <= 60


def minutes(database, seconds=3600.0, step=60.0):
    return database.fetch(stats.list_fleet_minutes(seconds, step))


def test_a_minute_has_workers_and_what_waits(database):
    worker, other, dead = (database.worker() for _ in range(3))
    database.sql("update tenure.workers set died_at = now() where id = %s", dead)
    database.sql("update tenure.workers set memory_mb = 80, app_version = '2.1' where id = %s", worker)
    database.sql("update tenure.workers set memory_mb = 120, app_version = '2.0', concurrency = 6 where id = %s", other)
    database.enqueue({"queue": "default"})
    assert database.claim(worker)
    database.enqueue({"queue": "mail"}, {"queue": "mail"}, {"queue": "late"}, {"queue": "paused"}, {"queue": "mail", "delay": 60})
    database.sql("update tenure.jobs set enqueued_at = now() - interval '5 minutes', run_at = null where queue = 'late'")
    database.sql("update tenure.jobs set enqueued_at = now() - interval '1 hour', run_at = null where queue = 'paused'")
    database.sql("insert into tenure.queues (name, paused_at) values ('paused', now())")
    record(database)
    [minute] = minutes(database)
    assert (minute.workers, minute.slots, minute.busy, minute.pending, minute.memory_mb) == (2, 16, 1, 4, 120.0)
    assert 300 <= minute.oldest_seconds < 400, "a queue that is paused is not late"
    assert minute.app_versions == ["2.0", "2.1"]
    queues = {one.name: (one.pending, one.oldest // 300) for one in minute.queues}
    assert queues == {"mail": (2, 0), "late": (1, 1), "paused": (1, 12)}


def test_an_empty_fleet_has_a_minute_too(database):
    record(database)
    [minute] = minutes(database)
    assert minute[1:] == (0, 0, 0, 0, 0.0, None, [], [])


def test_a_minute_is_recorded_once(database):
    record(database)
    database.end_term("rollup")
    first = database.sql("select minute, workers from tenure.fleet_minutes")
    database.worker()
    record(database)
    # The second may have been the next minute.
    assert database.sql("select minute, workers from tenure.fleet_minutes order by minute")[:1] == first


def test_a_step_shows_the_fewest_workers_and_the_most_that_waited(database):
    for age, workers, pending, versions, queues in (
        (3, 4, 1, ["1"], [{"name": "mail", "pending": 1, "oldest": 9}]),
        (4, 2, 7, ["1", "2"], [{"name": "mail", "pending": 7, "oldest": 2}]),
    ):
        database.sql(
            "insert into tenure.fleet_minutes values (date_bin('1 hour', now(), '1970-01-01') - make_interval(mins => %s),"
            " %s, 10, 3, %s, 9, 50, %s, %s)",
            *(age, workers, pending, json.dumps(versions), json.dumps(queues)),
        )
    [step] = minutes(database, 7200.0, 600.0)
    assert (step.workers, step.slots, step.busy, step.pending, step.memory_mb) == (2, 10, 3, 7, 50.0)
    assert step.app_versions == ["1", "2"]
    assert step.queues == [("mail", 7, 9)]
    assert len(minutes(database, 7200.0, 60.0)) == 2


def test_a_queue_in_a_limit_group_counts_once(database):
    database.sql("insert into tenure.limits (name, declared) values ('queue:mail', '{\"concurrency\": 1}')")
    database.enqueue({"queue": "mail"}, {"queue": "mail"})
    database.sql("update tenure.jobs set limit_group = 'queue:mail' where id = (select min(id::text)::uuid from tenure.jobs)")
    record(database)
    [minute] = minutes(database)
    assert [(one.name, one.pending) for one in minute.queues] == [("mail", 2)]


def test_minutes_are_kept_for_a_day(database):
    for age in ("1 hour", "25 hours", "9 days"):
        database.sql(
            "insert into tenure.fleet_minutes values (now() - %s::interval, 1, 1, 0, 0, 0, null, '[]', '[]')",
            age,
        )
    assert database.run(cleaning.clean_fleet_minutes(database.term("cleaner"), limit=10))[0] == (True, 2, None)
    assert len(minutes(database, 86400.0)) == 1
