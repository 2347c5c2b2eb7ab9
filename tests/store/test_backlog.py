"""tenure.backlog: one number for whoever starts and ends machines."""

from __future__ import annotations

import pytest

from tests.store.desk import Desk
from tests.store.plans import prepare_stage

WAIT = {"queue": "mail"}


def backlog(desk, *given) -> int:
    marks = ", ".join(["%s"] * len(given))
    return desk.sql(f"select tenure.backlog({marks})", *given)[0][0]


def test_nothing_waits_in_an_empty_database(desk):
    assert (backlog(desk), backlog(desk, "mail"), backlog(desk, "mail", True)) == (0, 0, 0)


def test_it_counts_what_is_pending_in_one_queue_or_in_all(desk):
    desk.enqueue({}, {}, WAIT, {"queue": "zoo", "priority": 99})
    assert (backlog(desk), backlog(desk, "default"), backlog(desk, "mail"), backlog(desk, "nowhere")) == (4, 2, 1, 0)


def test_a_paused_queue_wants_nothing(desk):
    desk.enqueue({}, {}, WAIT)
    desk.enqueue({"delay": 60, **WAIT})
    desk.sql("update tenure.jobs set run_at = now() - interval '1 s' where state = 'scheduled'")
    desk.sql("insert into tenure.queues (name, paused_at) values ('mail', now())")
    assert (backlog(desk), backlog(desk, "mail")) == (2, 0)


def test_what_is_due_counts_although_nobody_has_promoted_it(desk):
    """Else machines that were scaled to zero would never come back for it."""
    [due, _] = desk.enqueue({"delay": 60, **WAIT}, {"delay": 60, **WAIT})
    assert backlog(desk) == 0
    desk.sql("update tenure.jobs set run_at = clock_timestamp() - interval '1 s' where id = %s", due)
    assert (backlog(desk), backlog(desk, "mail"), backlog(desk, "default")) == (1, 1, 0)


def test_what_runs_counts_if_asked_for(desk):
    desk.enqueue({}, {}, {})
    desk.claim(desk.worker(), limit=2)
    assert (backlog(desk), backlog(desk, None, True), backlog(desk, "default", True), backlog(desk, "mail", True)) == (1, 3, 3, 0)
    assert desk.sql("select tenure.backlog(running => true)") == [(3,)]


def test_it_counts_no_further_than_ten_thousand(desk):
    desk.sql(
        "insert into tenure.jobs (id, kind, state, queue)"
        " select gen_random_uuid(), 'work', 'pending', 'q' || n % 2 from generate_series(1, 12000) n"
    )
    assert (backlog(desk), backlog(desk, "q0")) == (10_000, 6_000)


@pytest.mark.slow
@pytest.mark.parametrize("queue", [None, "default"])
@pytest.mark.parametrize("condition", ["never analysed, filled", "analysed when every job was a dead letter, then filled"])
def test_it_walks_over_no_table_whatever_the_statistics_say(fresh_dsn, condition, queue):
    with Desk(fresh_dsn) as desk:
        prepare_stage(desk, condition, 30_000)
        read = "select seq_tup_read from pg_stat_xact_user_tables where schemaname = 'tenure' and relname = 'jobs'"
        with desk.connection.transaction():
            before = desk.sql(read)
            assert backlog(desk, queue, True) == 10_000
            assert desk.sql(read) == before
