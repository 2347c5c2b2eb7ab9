"""What the leader does for lists and counts: merging tallies, forgetting what nobody needs any more."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tenure.store import control, jobs
from tenure.store.leases import Term
from tests.store.desk import Desk

WRITES: dict[str, Any] = {
    "merge tallies": lambda term: control.merge_tallies(term, limit=100),
    "clean keys": lambda term: control.clean_keys(term, limit=100),
    "clean traces": lambda term: control.clean_traces(term, limit=100, keep=60.0),
    "clean counts": lambda term: control.clean_counts(term, limit=100, keep=60.0),
}


def lay_out(desk: Desk) -> None:
    """Something to do for each of them."""
    desk.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    desk.sql(
        "insert into tenure.keys (kind, key, job_id, scope, expires_at, digest) values"
        " ('k', 'over', gen_random_uuid(), 'window', now() - interval '1 s', ''),"
        " ('k', 'idle', gen_random_uuid(), 'live', null, '')"
    )
    leave_traces(desk, str(uuid4()))
    desk.sql("insert into tenure.watches (job_id, until) values (gen_random_uuid(), now() - interval '1 s')")
    desk.sql(
        "insert into tenure.counters (hour, queue, kind, what, jobs) values (now() - interval '1 day', 'q', 'k', 'failed', 1)"
    )


def leave_traces(desk: Desk, job_id: str, age: str = "1 hour") -> None:
    desk.sql(
        "insert into tenure.progress (job_id, fence, percent, began_at) values (%s, 1, 5, now() - %s::interval)", job_id, age
    )
    desk.sql(
        "insert into tenure.logs (job_id, fence, first_line, last_line, at, lines)"
        " values (%s, 1, 1, 1, now() - %s::interval, '[]')",
        *(job_id, age),
    )
    desk.sql("insert into tenure.incidents (job_id, what, at) values (%s, 'failed', now() - %s::interval)", job_id, age)


def everything(desk: Desk) -> dict[str, list[Any]]:
    tables = ("tallies", "counters", "keys", "progress", "logs", "incidents", "watches", "leases")
    return {table: sorted(desk.sql(f"select t::text from tenure.{table} t")) for table in tables}


def traced(desk: Desk) -> set[str]:
    found = [desk.sql(f"select job_id::text from tenure.{table}") for table in ("progress", "logs", "incidents")]
    return {row[0] for rows in found for row in rows}


@pytest.mark.parametrize("write", WRITES)
def test_without_the_current_term_nothing_is_written(desk, write):
    lay_out(desk)
    old = desk.term("duty")
    desk.end_term("duty")
    term = desk.term("duty")
    before = everything(desk)
    for wrong in (old, Term("duty", str(uuid4()), term.term, 60.0), Term("other", term.holder, term.term, 60.0)):
        assert desk.run(WRITES[write](wrong))[0][0] is False
    assert everything(desk) == before
    desk.end_term("duty")
    before = everything(desk)
    assert desk.run(WRITES[write](term))[0][0] is False
    assert everything(desk) == before


@pytest.mark.parametrize("write", WRITES)
def test_the_current_term_writes_and_is_renewed(desk, write):
    lay_out(desk)
    short = desk.term("duty", ttl=10.0)
    before = everything(desk)
    holds, *counts = desk.run(WRITES[write](Term("duty", short.holder, short.term, 3600.0)))[0]
    assert (holds, sum(count for count in counts if isinstance(count, int))) == (
        True,
        {"merge tallies": 1, "clean traces": 3}.get(write, 2),
    )
    assert everything(desk) != before
    assert desk.sql("select expires_at > now() + interval '30 minutes' from tenure.leases") == [(True,)]


# Counts


def test_tallies_are_added_up_by_the_hour(desk):
    term = desk.term("rollup")
    rows = [
        ("2026-01-01 10:59:59+00", "completed", 3, "6 s", "3 s"),
        ("2026-01-01 10:00:00+00", "completed", 1, "2 s", "1 s"),
        ("2026-01-01 11:00:00+00", "completed", 5, "1 s", "1 s"),
        ("2026-01-01 10:30:00+00", "retry", 2, None, None),
    ]
    for at, what, count, waited, ran in rows:
        desk.sql(
            "insert into tenure.tallies values (%s, 'q', 'k', %s, %s, %s::interval, %s::interval)", at, what, count, waited, ran
        )
    desk.sql("set timezone = 'Asia/Kolkata'")  # half an hour off: an hour is an hour of UTC
    merged = 0
    while (count := desk.run(control.merge_tallies(term, limit=3))[0][1]) > 0:
        merged += count
    assert merged == 4
    seconds = "extract(epoch from waited)::int, extract(epoch from ran)::int"
    assert desk.sql(f"select (hour at time zone 'UTC')::text, what, jobs, {seconds} from tenure.counters order by 1, 2") == [
        ("2026-01-01 10:00:00", "completed", 4, 8, 4),
        ("2026-01-01 10:00:00", "retry", 2, 0, 0),
        ("2026-01-01 11:00:00", "completed", 5, 1, 1),
    ]


def test_what_is_being_merged_is_seen_once_and_counted_once(desk, other):
    for _ in range(10):
        desk.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    first, second = desk.term("one"), desk.term("two")
    with other.connection.transaction():
        assert other.run(control.merge_tallies(first, limit=6))[0] == (True, 6)
        assert [tuple(row[2:4]) for row in desk.run(control.count_finished())] == [("completed", 10)]
    assert [tuple(row[2:4]) for row in desk.run(control.count_finished())] == [("completed", 10)]
    assert desk.run(control.merge_tallies(second, limit=100))[0] == (True, 4)
    assert desk.sql("select sum(jobs) from tenure.counters") == [(10,)]


def test_old_counts_and_watches_that_are_over_go_and_the_others_stay(desk):
    term = desk.term("cleaner")
    desk.sql(
        "insert into tenure.counters (hour, queue, kind, what, jobs)"
        " select now() - n * interval '1 day', 'q', 'k', 'completed', 1 from generate_series(0, 9) n"
    )
    desk.sql("insert into tenure.watches select gen_random_uuid(), now() + n * interval '1 minute' from generate_series(-4, 5) n")
    assert desk.run(control.clean_counts(term, limit=3, keep=5 * 86400.0 - 60))[0] == (True, 3, 3)
    assert desk.run(control.clean_counts(term, limit=3, keep=5 * 86400.0 - 60))[0] == (True, 2, 2)
    assert desk.sql("select count(*) from tenure.watches where until > now()") == desk.sql("select count(*) from tenure.watches")
    assert desk.sql("select count(*) from tenure.counters") == [(5,)]


# Traces


def test_traces_go_with_their_time_but_never_those_of_a_live_job(desk):
    term = desk.term("cleaner")
    [live] = desk.enqueue({})
    young = str(uuid4())
    leave_traces(desk, live)
    leave_traces(desk, young, "1 minute")
    for _ in range(5):
        leave_traces(desk, str(uuid4()))
    assert desk.run(control.clean_traces(term, limit=3, keep=600.0))[0] == (True, 3, 3, 3)
    assert desk.run(control.clean_traces(term, limit=3, keep=600.0))[0] == (True, 2, 2, 2)
    assert desk.run(control.clean_traces(term, limit=3, keep=600.0))[0] == (True, 0, 0, 0)
    assert traced(desk) == {live, young}


# Keys


def sweep(desk: Desk, limit: int = 2) -> tuple[int, int]:
    """All keys, some at a time."""
    term, after, expired, freed = desk.term(f"cleaner {uuid4()}"), None, 0, 0
    while True:
        holds, over, idle, kind, key = desk.run(control.clean_keys(term, limit=limit, after=after))[0]
        assert holds
        expired, freed = expired + over, freed + idle
        if kind is None:
            return expired, freed
        after = (kind, key)


def keys(desk: Desk) -> list[str]:
    return [row[0] for row in desk.sql("select key from tenure.keys order by key")]


def test_keys_go_when_nothing_stands_behind_them_any_more(desk):
    worker = desk.worker()
    desk.enqueue(
        *[{"key": f"done {scope}", "key_for": scope} for scope in ("live", "forever", "0.001", "3600")],
        *[{"key": f"live {scope}", "key_for": scope, "queue": "later"} for scope in ("live", "forever", "0.001", "3600")],
        *[{"key": f"many {n}", "key_for": "live"} for n in range(5)],
    )
    desk.run(jobs.finish(desk.claim(worker, limit=100).outcomes()))
    assert sweep(desk) == (1, 6)
    assert keys(desk) == ["done 3600", "done forever", "live 0.001", "live 3600", "live forever", "live live"]
    assert sweep(desk) == (0, 0)


def test_a_key_that_is_being_taken_over_at_this_moment_stays(desk, other):
    desk.enqueue({"key": "a", "key_for": "live"}, {"key": "b", "key_for": "0.001"})
    desk.run(jobs.finish(desk.claim(desk.worker()).outcomes()))
    with other.connection.transaction():
        taken = other.enqueue({"key": "a", "key_for": "live"}, {"key": "b", "key_for": "60"})
        assert sweep(desk) == (0, 0)
    assert sweep(desk) == (0, 0)
    assert {row[0] for row in desk.sql("select job_id::text from tenure.keys")} == set(taken)


def test_an_enqueue_whose_key_is_removed_meanwhile_takes_it_anew(desk, other):
    desk.enqueue({"key": "a", "key_for": "live"})
    desk.run(jobs.finish(desk.claim(desk.worker()).outcomes()))
    with other.connection.transaction():
        assert sweep(other) == (0, 1)
    [job_id] = desk.enqueue({"key": "a", "key_for": "live"})
    assert desk.sql("select job_id::text from tenure.keys") == [(job_id,)]
