"""tenure.backlog: one number for autoscalers."""

from __future__ import annotations

import pytest

from tests.store.database import Database
from tests.store.plans import prepare_tables

WAIT = {"queue": "mail"}


def backlog(database, *given) -> int:
    marks = ", ".join(["%s"] * len(given))
    return database.sql(f"select tenure.backlog({marks})", *given)[0][0]


def test_nothing_waits_in_an_empty_database(database):
    assert (backlog(database), backlog(database, "mail"), backlog(database, "mail", True)) == (0, 0, 0)


def test_it_counts_what_is_pending_in_one_queue_or_in_all(database):
    database.enqueue({}, {}, WAIT, {"queue": "zoo", "priority": 99})
    assert (backlog(database), backlog(database, "default"), backlog(database, "mail"), backlog(database, "nowhere")) == (
        4,
        2,
        1,
        0,
    )


def test_a_paused_queue_wants_nothing(database):
    database.enqueue({}, {}, WAIT)
    database.enqueue({"delay": 60, **WAIT})
    database.sql("update tenure.jobs set run_at = now() - interval '1 s' where state = 'scheduled'")
    database.sql("insert into tenure.queues (name, paused_at) values ('mail', now())")
    assert (backlog(database), backlog(database, "mail")) == (2, 0)


def test_due_jobs_count_before_they_are_promoted(database):
    """Otherwise machines that were scaled to zero would never be started for it."""
    [due, _] = database.enqueue({"delay": 60, **WAIT}, {"delay": 60, **WAIT})
    assert backlog(database) == 0
    database.sql("update tenure.jobs set run_at = clock_timestamp() - interval '1 s' where id = %s", due)
    assert (backlog(database), backlog(database, "mail"), backlog(database, "default")) == (1, 1, 0)


def test_what_runs_counts_if_asked_for(database):
    database.enqueue({}, {}, {})
    database.claim(database.worker(), limit=2)
    assert (
        backlog(database),
        backlog(database, None, True),
        backlog(database, "default", True),
        backlog(database, "mail", True),
    ) == (1, 3, 3, 0)
    assert database.sql("select tenure.backlog(running => true)") == [(3,)]


def test_it_counts_no_further_than_ten_thousand(database):
    database.sql(
        "insert into tenure.jobs (id, kind, state, position, queue)"
        " select gen_random_uuid(), 'work', 'pending', n, 'q' || n % 2 from generate_series(1, 12000) n"
    )
    assert (backlog(database), backlog(database, "q0")) == (10_000, 6_000)


@pytest.mark.slow
@pytest.mark.parametrize("queue", [None, "default"])
@pytest.mark.parametrize("condition", ["never analysed, filled", "analysed when every job was a dead letter, then filled"])
def test_it_scans_no_table_under_any_statistics(fresh_dsn, condition, queue):
    with Database(fresh_dsn) as database:
        prepare_tables(database, condition, 30_000)
        read = "select seq_tup_read from pg_stat_xact_user_tables where schemaname = 'tenure' and relname = 'jobs'"
        with database.connection.transaction():
            before = database.sql(read)
            assert backlog(database, queue, True) == 10_000
            assert database.sql(read) == before


@pytest.mark.parametrize("condition", ["analysed", "never analysed", "analysed while empty"])
@pytest.mark.parametrize("others", ["due in a paused queue", "due in a queue before it", "scheduled for later"])
def test_due_jobs_of_one_queue_are_counted_without_reading_those_of_others(fresh_dsn, condition, others):
    """More than ten thousand due jobs of a paused queue hid those of all other queues from autoscalers."""
    with Database(fresh_dsn) as database:
        database.sql("alter table tenure.jobs set (autovacuum_enabled = false)")
        if condition == "analysed while empty":
            database.sql("analyze tenure.jobs")
        filled = """insert into tenure.jobs (id, kind, state, position, queue, run_at)
            select gen_random_uuid(), 'work', 'scheduled', 0, %s, now() + %s * interval '1 hour' from generate_series(1, %s)"""
        database.sql(filled, "a", 1 if others == "scheduled for later" else -2, 12_000)
        database.sql(filled, "media", -1, 5)
        if others == "due in a paused queue":
            database.sql("insert into tenure.queues (name, paused_at) values ('a', now())")
        if condition == "analysed":
            database.sql("analyze tenure.jobs")
        read = "select seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables where schemaname = 'tenure' and relname = 'jobs'"
        with database.connection.transaction():
            before = database.sql(read)
            assert backlog(database, "media") == 5
            [(scanned, fetched)] = [(a - b, c - d) for (a, c), (b, d) in zip(database.sql(read), before, strict=True)]
            assert scanned == 0
            assert fetched < 100
        assert backlog(database) == {"due in a paused queue": 5, "due in a queue before it": 10_000}.get(others, 5)
