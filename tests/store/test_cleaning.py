"""What the leader does for lists and counts: merging tallies, removing expired rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tenure.store import cleaning, history, jobs, reports
from tenure.store.leases import Term
from tests.store.database import Database
from tests.store.forged_jobs import change_state

WRITES: dict[str, Any] = {
    "merge tallies": lambda term: cleaning.merge_tallies(term, limit=100),
    "clean keys": lambda term: cleaning.clean_keys(term, limit=100),
    "clean progress": lambda term: cleaning.clean_progress(term, limit=100, keep=60.0),
    "clean logs": lambda term: cleaning.clean_logs(term, limit=100, keep=60.0),
    "clean incidents": lambda term: cleaning.clean_incidents(term, limit=100, keep=60.0),
    "clean audit": lambda term: cleaning.clean_audit(term, limit=100, keep=60.0),
    "clean watches": lambda term: cleaning.clean_watches(term, limit=100),
    "clean counters": lambda term: cleaning.clean_counters(term, limit=100, keep=60.0),
    "clean dead": lambda term: cleaning.clean_dead(term, limit=100, keep=60.0),
    "clean history": lambda term: history.clean(term, limit=100, keep=60.0),
}


def lay_out(database: Database) -> None:
    """Something to do for each of them."""
    database.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    database.sql(
        "insert into tenure.keys (kind, key, job_id, scope, expires_at, digest) values"
        " ('k', 'over', gen_random_uuid(), 'window', now() - interval '1 s', ''),"
        " ('k', 'idle', gen_random_uuid(), 'live', null, '')"
    )
    leave_traces(database, str(uuid4()))
    database.sql("insert into tenure.watches (job_id, until) values (gen_random_uuid(), now() - interval '1 s')")
    record_call(database, "400 days")
    database.sql(
        "insert into tenure.counters (hour, queue, kind, what, jobs) values (now() - interval '1 day', 'q', 'k', 'failed', 1)"
    )
    database.enqueue({}, {})
    change_state(database.sql, "dead_letter", started_at=datetime.now(UTC) - timedelta(hours=1))
    database.sql("insert into tenure.retentions values ('kept', '1 day')")
    finish(database, "work", "1 hour")
    finish(database, "kept", "2 days")


def record_call(database: Database, age: str) -> None:
    """An entry of the audit log."""
    database.sql(
        "insert into tenure.audit (at, request_id, phase, actor, source, action)"
        " values (now() - %s::interval, gen_random_uuid(), 'requested', %s, 'api', 'cancel_job')",
        *(age, age),
    )


def finish(database: Database, kind: str, age: str) -> None:
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) values (gen_random_uuid(), 1, now(), now() - %s::interval, 1, 1, 50, 0, 'completed', %s, 'q', '{}')",
        *(age, kind),
    )


def leave_traces(database: Database, job_id: str, age: str = "1 hour") -> None:
    database.sql(
        "insert into tenure.progress (job_id, fence, percent, began_at) values (%s, 1, 5, now() - %s::interval)", job_id, age
    )
    database.sql(
        "insert into tenure.logs (job_id, fence, first_line, last_line, at, lines)"
        " values (%s, 1, 1, 1, now() - %s::interval, '[]')",
        *(job_id, age),
    )
    database.sql("insert into tenure.incidents (job_id, what, at) values (%s, 'failed', now() - %s::interval)", job_id, age)


def everything(database: Database) -> dict[str, list[Any]]:
    tables = (
        "tallies",
        "counters",
        "keys",
        "progress",
        "logs",
        "incidents",
        "watches",
        "leases",
        "minutes",
        "latencies",
        "jobs",
        "history",
        "audit",
    )
    return {table: sorted(database.sql(f"select t::text from tenure.{table} t")) for table in tables}


def traced(database: Database) -> set[str]:
    found = [database.sql(f"select job_id::text from tenure.{table}") for table in ("progress", "logs", "incidents")]
    return {row[0] for rows in found for row in rows}


@pytest.mark.parametrize("write", WRITES)
def test_without_the_current_term_nothing_is_written(database, write):
    lay_out(database)
    old = database.term("duty")
    database.end_term("duty")
    term = database.term("duty")
    before = everything(database)
    for wrong in (old, Term("duty", str(uuid4()), term.term, 60.0), Term("other", term.holder, term.term, 60.0)):
        assert database.run(WRITES[write](wrong))[0][0] is False
    assert everything(database) == before
    database.end_term("duty")
    before = everything(database)
    assert database.run(WRITES[write](term))[0][0] is False
    assert everything(database) == before


@pytest.mark.parametrize("write", WRITES)
def test_the_current_term_writes(database, write):
    lay_out(database)
    term = database.term("duty")
    before = everything(database)
    holds, *counts = database.run(WRITES[write](term))[0]
    found = {"merge tallies": 2, "clean keys": 2, "clean dead": 2, "clean history": 2}.get(write, 1)
    assert (holds, sum(count for count in counts if isinstance(count, int))) == (True, found)
    assert everything(database) != before


# Counts


def test_tallies_are_added_up_by_the_hour(database):
    term = database.term("rollup")
    rows = [
        ("2026-01-01 10:59:59+00", "completed", 3, "6 s", "3 s"),
        ("2026-01-01 10:00:00+00", "completed", 1, "2 s", "1 s"),
        ("2026-01-01 11:00:00+00", "completed", 5, "1 s", "1 s"),
        ("2026-01-01 10:30:00+00", "retry", 2, None, None),
    ]
    for at, what, count, waited, ran in rows:
        database.sql(
            "insert into tenure.tallies values (%s, 'q', 'k', %s, %s, %s::interval, %s::interval)", at, what, count, waited, ran
        )
    database.sql("set timezone = 'Asia/Kolkata'")  # half an hour off: an hour is an hour of UTC
    merged = 0
    while (count := database.run(cleaning.merge_tallies(term, limit=3))[0][1]) > 0:
        merged += count
    assert merged == 4
    seconds = "extract(epoch from waited)::int, extract(epoch from ran)::int"
    assert database.sql(f"select (hour at time zone 'UTC')::text, what, jobs, {seconds} from tenure.counters order by 1, 2") == [
        ("2026-01-01 10:00:00", "completed", 4, 8, 4),
        ("2026-01-01 10:00:00", "retry", 2, 0, 0),
        ("2026-01-01 11:00:00", "completed", 5, 1, 1),
    ]


def test_what_is_being_merged_is_seen_once_and_counted_once(database, other):
    for _ in range(10):
        database.sql("insert into tenure.tallies (queue, kind, what, jobs) values ('q', 'k', 'completed', 1)")
    first, second = database.term("one"), database.term("two")
    with other.connection.transaction():
        assert other.run(cleaning.merge_tallies(first, limit=6))[0] == (True, 6, None)
        assert [tuple(row[2:4]) for row in database.run(reports.count_finished())] == [("completed", 10)]
    assert [tuple(row[2:4]) for row in database.run(reports.count_finished())] == [("completed", 10)]
    assert database.run(cleaning.merge_tallies(second, limit=100))[0] == (True, 4, None)
    assert database.sql("select sum(jobs) from tenure.counters") == [(10,)]


def test_old_counts_and_watches_that_are_over_go_and_the_others_stay(database):
    term = database.term("cleaner")
    database.sql(
        "insert into tenure.counters (hour, queue, kind, what, jobs)"
        " select now() - n * interval '1 day', 'q', 'k', 'completed', 1 from generate_series(0, 9) n"
    )
    database.sql(
        "insert into tenure.watches select gen_random_uuid(), now() + n * interval '1 minute' from generate_series(-4, 5) n"
    )
    for removed in (3, 2, 0):
        assert database.run(cleaning.clean_counters(term, limit=3, keep=5 * 86400.0 - 60))[0] == (True, removed, None)
    for removed in (3, 2, 0):
        assert database.run(cleaning.clean_watches(term, limit=3))[0] == (True, removed, None)
    assert database.sql("select count(*) from tenure.watches where until > now()") == database.sql(
        "select count(*) from tenure.watches"
    )
    assert database.sql("select count(*) from tenure.counters") == [(5,)]


def test_old_entries_of_the_audit_log_go_but_none_of_the_last_thirty_days(database):
    term = database.term("cleaner")
    for age in ("400 days", "370 days", "360 days", "31 days", "29 days", "1 second"):
        record_call(database, age)
    left = lambda: [age for (age,) in database.sql("select actor from tenure.audit order by at")]  # noqa: E731
    for removed in (1, 1, 0):
        assert database.run(cleaning.clean_audit(term, limit=1, keep=365 * 86400.0))[0] == (True, removed, None)
    assert left() == ["360 days", "31 days", "29 days", "1 second"]
    database.run(cleaning.clean_audit(term, limit=100, keep=0.0))
    assert left() == ["29 days", "1 second"]


def test_tallies_are_added_up_by_the_minute_with_their_latencies(database):
    worker = database.worker()
    database.enqueue({}, {}, {})
    database.run(jobs.finish(database.claim(worker).finished()))
    database.sql("update tenure.tallies set at = '2026-01-01 10:59:30+00'")
    live = [tuple(row) for row in database.run(reports.latencies(86400.0, None, None))]
    assert {row[2] for row in live} == {"waited", "ran"}
    database.run(cleaning.merge_tallies(database.term("rollup"), limit=100))
    assert database.sql(
        "select (minute at time zone 'UTC')::text, queue, kind, what, jobs from tenure.minutes order by what"
    ) == [("2026-01-01 10:59:00", "default", "work", what, 3) for what in ("completed", "enqueued", "started")]
    spans = database.sql(
        "select span, (at at time zone 'UTC')::text, measure, sum(jobs) from tenure.latencies"
        " where span <> 'minute' group by 1, 2, 3 order by 1, 2, 3"
    )
    assert [tuple(row) for row in spans] == [
        (span, at, measure, 3)
        for span, at in (("day", "2026-01-01 00:00:00"), ("hour", "2026-01-01 10:00:00"))
        for measure in ("ran", "waited")
    ]


def test_a_bucket_holds_what_took_at_most_its_bound(database):
    for bucket in range(64):
        bound = f"{2 ** (bucket / 2) / 1000:.9f} seconds"  # PostgreSQL 14 reads no more than 2**31 microseconds
        assert database.sql("select tenure.latency_bucket(%s::interval)", bound)[0][0] in (bucket, bucket + 1)
    assert database.sql("select tenure.latency_bucket('-1 s'), tenure.latency_bucket('1 year')") == [(0, 63)]


def test_minutes_go_after_a_day_and_hours_stay(database):
    term = database.term("cleaner")
    for age in ("1 hour", "25 hours", "9 days", "91 days"):
        database.sql("insert into tenure.minutes values (now() - %s::interval, 'q', 'k', 'completed', 1)", age)
        for span in ("minute", "hour", "day"):
            database.sql("insert into tenure.latencies values (now() - %s::interval, %s, 'q', 'k', 'ran', 5, 1)", age, span)
    assert database.run(cleaning.clean_minutes(term, limit=10))[0] == (True, 3, None)
    assert database.run(cleaning.clean_latencies(term, limit=10, keep=90 * 86400.0))[0] == (True, 6, None)
    kept = database.sql("select span, count(*) from tenure.latencies group by span order by span")
    assert kept == [("day", 3), ("hour", 2), ("minute", 1)]


@pytest.mark.parametrize(("seconds", "jobs"), [(3600, 1), (10_800, 2), (86_400, 30), (604_800, 40), (604_801, 500)])
def test_latencies_of_a_longer_period_are_read_from_fewer_rows(database, seconds, jobs):
    rows = [
        ("minute", "10 minutes", 1),
        ("minute", "2 hours", 1),
        ("hour", "10 minutes", 30),
        ("hour", "3 days", 10),
        ("day", "7 days", 500),
    ]
    for span, age, count in rows:
        database.sql("insert into tenure.latencies values (now() - %s::interval, %s, 'q', 'k', 'ran', 5, %s)", age, span, count)
    assert [row[4] for row in database.run(reports.latencies(seconds, None, None))] == [jobs]


# Retention


def test_dead_letters_go_when_their_own_time_is_over(database):
    old, young, alive = database.enqueue({}, {}, {})
    change_state(database.sql, "dead_letter", old, young, started_at="now")
    database.sql("update tenure.jobs set started_at = now() - interval '31 days' where id in (%s, %s)", old, alive)
    term = database.term("cleaner")
    assert database.run(cleaning.clean_dead(term, limit=10, keep=30 * 86400.0))[0] == (True, 1, None)
    assert {row[0] for row in database.sql("select id::text from tenure.jobs")} == {young, alive}


def test_a_kind_is_kept_for_its_own_time_and_the_others_for_theirs(database):
    database.run(history.declare_retentions({"audit": 30 * 86400.0, "noise": 3600.0, "work": None}))
    for kind, age in [("audit", "6 days"), ("work", "8 days"), ("noise", "2 hours"), ("noise", "1 minute"), ("work", "1 day")]:
        finish(database, kind, age)
    term = database.term("cleaner")
    assert database.run(history.clean(term, limit=10, keep=7 * 86400.0))[0] == (True, 1, 1, None)
    left = database.sql("select kind, (now() - finished_at)::text from tenure.history order by kind, finished_at desc")
    assert [kind for kind, _ in left] == ["audit", "noise", "work"]
    assert database.run(history.clean(term, limit=10, keep=7 * 86400.0))[0] == (True, 0, 0, None)


def test_partitions_stay_for_the_kind_that_is_kept_longest(fresh_dsn):
    with Database(fresh_dsn) as database:
        database.sql(
            "do $$ declare day date := (now() at time zone 'UTC')::date - 10; begin"
            " execute format('create table tenure.history_%s partition of tenure.history for values from (%L) to (%L)',"
            " to_char(day, 'YYYYMMDD'), day, day + 1); end $$"
        )
        database.run(history.declare_retentions({"audit": 30 * 86400.0}))
        term = database.term("cleaner")
        assert database.run(history.drop(term, keep=7 * 86400.0)) == [(None,)]
        database.run(history.declare_retentions({"audit": None}))
        assert database.run(history.drop(term, keep=7 * 86400.0))[0][0].startswith("history_")


def test_what_the_code_says_of_retention_is_taken_over_and_taken_back(database):
    database.run(history.declare_retentions({"a": 60.0, "b": 60.0}))
    database.run(history.declare_retentions({"a": 90.0, "b": None, "c": None}))
    assert database.sql("select kind, extract(epoch from keep)::int from tenure.retentions") == [("a", 90)]


# Traces


def test_traces_go_with_their_time_but_never_those_of_a_live_job(database):
    term = database.term("cleaner")
    [live] = database.enqueue({})
    young = str(uuid4())
    leave_traces(database, live)
    leave_traces(database, young, "1 minute")
    for _ in range(5):
        leave_traces(database, str(uuid4()))
    for clean in (cleaning.clean_progress, cleaning.clean_logs, cleaning.clean_incidents):
        for removed in (3, 2, 0):
            assert database.run(clean(term, limit=3, keep=600.0))[0] == (True, removed, None)
    assert traced(database) == {live, young}


# Keys


def sweep(database: Database, limit: int = 2) -> tuple[int, int]:
    """All keys, some at a time."""
    term, after, expired, freed = database.term(f"cleaner {uuid4()}"), None, 0, 0
    while True:
        holds, over, idle, kind, key, _ = database.run(cleaning.clean_keys(term, limit=limit, after=after))[0]
        assert holds
        expired, freed = expired + over, freed + idle
        if kind is None:
            return expired, freed
        after = (kind, key)


def keys(database: Database) -> list[str]:
    return [row[0] for row in database.sql("select key from tenure.keys order by key")]


def test_keys_go_when_nothing_stands_behind_them_any_more(database):
    worker = database.worker()
    database.enqueue(
        *[{"key": f"done {scope}", "key_for": scope} for scope in ("live", "forever", "0.001", "3600")],
        *[{"key": f"live {scope}", "key_for": scope, "queue": "later"} for scope in ("live", "forever", "0.001", "3600")],
        *[{"key": f"many {n}", "key_for": "live"} for n in range(5)],
    )
    database.run(jobs.finish(database.claim(worker, limit=100).finished()))
    assert sweep(database) == (1, 6)
    assert keys(database) == ["done 3600", "done forever", "live 0.001", "live 3600", "live forever", "live live"]
    assert sweep(database) == (0, 0)


def test_a_key_that_is_being_taken_over_at_this_moment_stays(database, other):
    database.enqueue({"key": "a", "key_for": "live"}, {"key": "b", "key_for": "0.001"})
    database.run(jobs.finish(database.claim(database.worker()).finished()))
    with other.connection.transaction():
        taken = other.enqueue({"key": "a", "key_for": "live"}, {"key": "b", "key_for": "60"})
        assert sweep(database) == (0, 0)
    assert sweep(database) == (0, 0)
    assert {row[0] for row in database.sql("select job_id::text from tenure.keys")} == set(taken)


def test_an_enqueue_whose_key_is_removed_meanwhile_takes_it_again(database, other):
    database.enqueue({"key": "a", "key_for": "live"})
    database.run(jobs.finish(database.claim(database.worker()).finished()))
    with other.connection.transaction():
        assert sweep(other) == (0, 1)
    [job_id] = database.enqueue({"key": "a", "key_for": "live"})
    assert database.sql("select job_id::text from tenure.keys") == [(job_id,)]
