"""Partitions of history: made ahead, dropped by age, and never in the way of the work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from tenure.store import jobs, leases
from tests.store.desk import Desk


@pytest.fixture
def desk(fresh_dsn: str) -> Iterator[Desk]:
    with Desk(fresh_dsn) as desk:
        yield desk


def keep(desk: Desk, *, days_ahead: int = 7, days: float = 7) -> tuple[int, int]:
    [(made, dropped)] = desk.sql("select * from tenure.keep_history(%s, make_interval(secs => %s))", days_ahead, days * 86400.0)
    return made, dropped


def partitions(desk: Desk) -> list[str]:
    found = desk.sql("""
        select substr(c.relname, 9) from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'tenure.history'::regclass order by 1""")
    return [row[0] for row in found]


def days(*offsets: int) -> list[str]:
    today = datetime.now(UTC).date()
    return [f"{today + timedelta(days=offset):%Y%m%d}" for offset in offsets]


def make(desk: Desk, day: str) -> None:
    first = date(int(day[:4]), int(day[4:6]), int(day[6:]))
    desk.sql(
        f"create table tenure.history_{day} partition of tenure.history"
        f" for values from ('{first} 00:00+00') to ('{first + timedelta(days=1)} 00:00+00')"
    )


def test_days_ahead_are_made_once(desk):
    assert partitions(desk) == [*days(*range(8)), "default"]
    assert keep(desk) == (0, 0)
    assert keep(desk, days_ahead=9) == (2, 0)
    assert partitions(desk) == [*days(*range(10)), "default"]


def test_partitions_are_days_of_utc_whatever_the_session_says(desk):
    desk.sql("set timezone = 'Pacific/Kiritimati'")
    assert keep(desk, days_ahead=9) == (2, 0)
    desk.sql("set timezone = 'UTC'")
    [(bound,)] = desk.sql(f"select pg_get_expr(relpartbound, oid) from pg_class where relname = 'history_{days(9)[0]}'")
    assert bound.count("00:00:00+00") == 2


def test_what_is_older_than_its_time_is_dropped_and_the_rest_stays(desk):
    old = days(-400, -9, -8, -7, -1)
    for day in old:
        make(desk, day)
    assert keep(desk, days=7) == (0, 3)
    assert partitions(desk) == [*days(-7, -1, *range(8)), "default"]


def test_a_finished_job_goes_to_the_partition_of_its_day_or_to_the_default(desk):
    desk.enqueue({}, {})
    claim = desk.claim(desk.worker(), limit=1)
    desk.run(jobs.finish(claim.outcomes()))
    late = desk.claim(claim.worker_id, limit=1)
    desk.run(jobs.finish(late.outcomes(), now=datetime.now(UTC) + timedelta(days=100)))
    found = desk.sql("select c.relname from tenure.history h join pg_class c on c.oid = h.tableoid order by finished_at")
    assert found == [(f"history_{days(0)[0]}",), ("history_default",)]
    assert desk.job(late.ids[0])["state"] == "completed"


def test_a_day_whose_jobs_went_to_the_default_still_gets_its_partition(desk):
    """Nobody kept house for a week, jobs finished meanwhile: from then on days are made as if nothing had been."""
    for day in days(*range(8)):
        desk.sql(f"drop table tenure.history_{day}")
    desk.enqueue({})
    claim = desk.claim(desk.worker())
    desk.run(jobs.finish(claim.outcomes()))
    assert keep(desk) == (8, 0)
    assert desk.job(claim.ids[0])["state"] == "completed"


def test_old_jobs_in_the_default_partition_go_when_their_time_is_over(desk):
    desk.enqueue({})
    claim = desk.claim(desk.worker())
    desk.run(jobs.finish(claim.outcomes(), now=datetime.now(UTC) - timedelta(days=30)))
    keep(desk, days=7)
    assert desk.sql("select count(*) from tenure.history") == [(0,)]


def test_the_statement_of_the_cleaner_does_it_for_the_current_term_only(desk):
    make(desk, days(-30)[0])
    old = desk.term("cleaner")
    desk.end_term("cleaner")
    assert desk.run(leases.keep_history(old, days_ahead=8, keep=86400.0)) == []
    current = desk.term("cleaner")
    assert desk.run(leases.keep_history(old, days_ahead=8, keep=86400.0)) == []
    assert desk.run(leases.keep_history(current, days_ahead=8, keep=86400.0)) == [(1, 1)]
