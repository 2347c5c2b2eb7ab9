"""Partitions of history: made ahead, dropped by age, and never in the way of the work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from tenure.store import history, jobs
from tenure.store.query import Query
from tests.store.database import Database
from tests.store.locks import meanwhile
from tests.waiting import until


@pytest.fixture
def database(fresh_dsn: str) -> Iterator[Database]:
    with Database(fresh_dsn) as database:
        yield database


def keep(database: Database, *, days_ahead: int = 7, days: float = 7) -> tuple[int, int]:
    """Drops and makes partitions, as the cleaner does. Returns how many were made, and how many dropped."""
    dropped = 0
    while database.sql("select tenure.drop_history(make_interval(secs => %s))", days * 86400.0) != [(None,)]:
        dropped += 1
    [(made,)] = database.sql("select tenure.make_history(%s)", days_ahead)
    return made, dropped


def partitions(database: Database) -> list[str]:
    found = database.sql("""
        select substr(c.relname, 9) from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'tenure.history'::regclass order by 1""")
    return [row[0] for row in found]


def days(*offsets: int) -> list[str]:
    today = datetime.now(UTC).date()
    return [f"{today + timedelta(days=offset):%Y%m%d}" for offset in offsets]


def make(database: Database, day: str) -> None:
    first = date(int(day[:4]), int(day[4:6]), int(day[6:]))
    database.sql(
        f"create table tenure.history_{day} partition of tenure.history"
        f" for values from ('{first} 00:00+00') to ('{first + timedelta(days=1)} 00:00+00')"
    )


def test_days_ahead_are_made_once(database):
    assert partitions(database) == [*days(*range(8)), "default"]
    assert keep(database) == (0, 0)
    assert keep(database, days_ahead=9) == (2, 0)
    assert partitions(database) == [*days(*range(10)), "default"]


def test_partitions_are_days_of_utc_in_every_time_zone_of_the_session(database):
    database.sql("set timezone = 'Pacific/Kiritimati'")
    assert keep(database, days_ahead=9) == (2, 0)
    database.sql("set timezone = 'UTC'")
    [(bound,)] = database.sql(f"select pg_get_expr(relpartbound, oid) from pg_class where relname = 'history_{days(9)[0]}'")
    assert bound.count("00:00:00+00") == 2


def test_what_is_older_than_its_time_is_dropped_and_the_rest_stays(database):
    old = days(-400, -9, -8, -7, -1)
    for day in old:
        make(database, day)
    assert keep(database, days=7) == (0, 3)
    assert partitions(database) == [*days(-7, -1, *range(8)), "default"]


def test_a_finished_job_goes_to_the_partition_of_its_day_or_to_the_default(database):
    database.enqueue({}, {})
    claim = database.claim(database.worker(), limit=1)
    database.run(jobs.finish(claim.finished()))
    late = database.claim(claim.worker_id, limit=1)
    database.run(jobs.finish(late.finished(), now=datetime.now(UTC) + timedelta(days=100)))
    found = database.sql("select c.relname from tenure.history h join pg_class c on c.oid = h.tableoid order by finished_at")
    assert found == [(f"history_{days(0)[0]}",), ("history_default",)]
    assert database.job(late.ids[0])["state"] == "completed"


def test_a_day_whose_jobs_went_to_the_default_still_gets_its_partition(database):
    """The cleaner did not run for a week while jobs finished: after that, partitions are created as usual."""
    for day in days(*range(8)):
        database.sql(f"drop table tenure.history_{day}")
    database.enqueue({})
    claim = database.claim(database.worker())
    database.run(jobs.finish(claim.finished()))
    assert keep(database) == (8, 0)
    assert database.job(claim.ids[0])["state"] == "completed"


def test_old_jobs_in_the_default_partition_go_when_their_time_is_over(database):
    database.enqueue({})
    claim = database.claim(database.worker())
    database.run(jobs.finish(claim.finished(), now=datetime.now(UTC) - timedelta(days=30)))
    database.run(history.clean_default(database.term("cleaner"), limit=10, keep=7 * 86400.0))
    assert database.sql("select count(*) from tenure.history") == [(0,)]


def test_the_statement_of_the_cleaner_does_it_for_the_current_term_only(database):
    make(database, days(-30)[0])
    old = database.term("cleaner")
    database.end_term("cleaner")
    assert database.run(history.make(old, days_ahead=8)) == database.run(history.drop(old, keep=86400.0)) == []
    current = database.term("cleaner")
    assert database.run(history.make(old, days_ahead=8)) == database.run(history.drop(old, keep=86400.0)) == []
    assert database.run(history.make(current, days_ahead=8)) == [(1,)]
    assert database.run(history.drop(current, keep=86400.0)) == [(f"history_{days(-30)[0]}",)]
    assert database.run(history.drop(current, keep=86400.0)) == [(None,)]


# When today has no partition: after more than a week without workers, or in a restored dump


def forget_days(database: Database) -> None:
    for day in partitions(database):
        if day != "default":
            database.sql(f"drop table tenure.history_{day}")


def settled(database: Database, count: int, age: str = "0") -> None:
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) select gen_random_uuid(), 1, now(), clock_timestamp() - %s::interval, 1, 3, 50, 0, 'completed', 'work',"
        " 'default', '{}' from generate_series(1, %s)",
        age,
        count,
    )


def where(database: Database) -> dict[str, int]:
    """How many finished jobs are in which partition."""
    rows = database.sql(
        "select substr(c.relname, 9), count(*) from tenure.history h join pg_class c on c.oid = h.tableoid group by 1"
    )
    return dict(rows)


@pytest.mark.parametrize("caught", [10, 1500], ids=["few", "many"])
def test_what_was_caught_today_is_in_todays_partition_afterwards(database, caught):
    forget_days(database)
    settled(database, caught)
    assert database.run(history.make(database.term("cleaner"), days_ahead=7)) == [(8,)]
    assert partitions(database) == [*days(*range(8)), "default"]
    assert where(database) == {days(0)[0]: caught}
    settled(database, 5)
    assert where(database) == {days(0)[0]: caught + 5}


def test_many_rows_of_the_days_before_stay_with_those_of_today_up_to_the_last_partition(database):
    forget_days(database)
    make(database, days(-5)[0])
    for number, age in ((1200, "0"), (10, "2 days"), (3, "5 days"), (7, "20 days")):
        settled(database, number, age)
    settled(database, 4, "-30 days")  # from a clock that was ahead
    database.run(history.make(database.term("cleaner"), days_ahead=7))
    assert where(database) == {days(0)[0]: 1210, days(-5)[0]: 3, "default": 11}
    assert partitions(database) == [*days(-5, *range(8)), "default"]
    term = database.term("other cleaner")
    assert [database.run(history.drop(term, keep=2 * 86400.0))[0][0] for _ in range(2)] == [f"history_{days(-5)[0]}", None]


def test_the_new_default_partition_has_the_grants_of_the_old_one(database):
    database.sql("create role looks; grant select on tenure.history_default to looks")
    try:
        forget_days(database)
        settled(database, 1500)
        database.run(history.make(database.term("cleaner"), days_ahead=0))
        assert database.sql("select has_table_privilege('looks', 'tenure.history_default', 'select')") == [(True,)]
    finally:
        database.sql("drop owned by looks; drop role looks")


@pytest.mark.parametrize("caught", [0, 5000], ids=["few", "many"])
async def test_a_missing_partition_is_made_while_jobs_finish_all_the_time(database, fresh_dsn, caught):
    forget_days(database)
    settled(database, caught)
    done, failures, finished = threading.Event(), [], []

    def settle() -> None:
        try:
            with Database(fresh_dsn) as mine:
                worker = mine.worker()
                while not done.is_set():
                    mine.enqueue({}, {}, {})
                    claim = mine.claim(worker, limit=3)
                    assert len(mine.run(jobs.finish(claim.finished()))) == len(claim.ids)
                    finished.extend(claim.ids)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=settle) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        await until(lambda: len(finished) > 50)
        term = database.term("cleaner")
        await until(lambda: insist(database, history.make(term, days_ahead=7)))
        reached = len(finished)
        await until(lambda: failures or len(finished) > reached + 50)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert partitions(database) == [*days(*range(8)), "default"]
    assert where(database) == {days(0)[0]: caught + len(finished)}


async def test_a_partition_is_not_locked_before_its_parent(database, fresh_dsn):
    """A reader has locked the parent and is about to lock the partition that is dropped: they must not wait for each other."""
    [old] = days(-30)
    make(database, old)
    waits = "select count(*) from pg_locks where not granted and pid = %s"
    with Database(fresh_dsn) as reader, Database(fresh_dsn) as cleaner:
        with reader.connection.transaction():
            reader.sql("lock table only tenure.history in access share mode")
            dropped = meanwhile(lambda: cleaner.sql("select tenure.drop_history(interval '7 days')"))
            await until(lambda: database.sql(waits, cleaner.connection.info.backend_pid), is_=[(1,)])
            reader.sql("set local lock_timeout = '3s'")
            reader.sql(f"select count(*) from tenure.history_{old}")
        assert old in str(dropped())


async def test_partitions_are_made_and_dropped_among_many_readers(database, fresh_dsn):
    """Readers lock the parent before its partitions. Changes must lock in the same order, or both wait for each other."""
    done, failures, reads = threading.Event(), [], []

    def read() -> None:
        try:
            with Database(fresh_dsn) as mine:
                mine.connection.prepare_threshold = 0
                while not done.is_set():
                    mine.run(jobs.find(str(uuid4())))
                    reads.append(1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    try:
        term = database.term("cleaner")
        for ahead in range(8, 14):
            reached = len(reads)
            make(database, days(-30)[0])
            await until(lambda: insist(database, history.drop(term, keep=7 * 86400.0)))
            await until(lambda ahead=ahead: insist(database, history.make(term, days_ahead=ahead)))
            await until(lambda reached=reached: failures or len(reads) > reached + 12)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert partitions(database) == [*days(*range(14)), "default"]


def insist(database: Database, query: Query) -> object:
    """What it did; None when a lock was not had at once, as the cleaner sees it."""
    try:
        return database.run(query)[0][0]
    except psycopg.errors.LockNotAvailable:
        return None


def test_an_index_that_a_later_version_adds_is_built_on_the_partitions_that_exist(database):
    """Except today's, while it has rows: jobs could not be settled meanwhile."""
    finish_one = """
        insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state,
               kind, queue, input)
        values (gen_random_uuid(), 1, now(), now(), 1, 3, 50, 0, 'completed', 'work', 'default', '{}')"""
    without = """
        select count(*) from pg_inherits h where h.inhparent = 'tenure.history'::regclass
           and not exists (select from pg_index i join pg_inherits c on c.inhrelid = i.indexrelid
                            where i.indrelid = h.inhrelid and c.inhparent = 'tenure.history_late'::regclass)"""
    with database.connection.transaction(force_rollback=True):
        database.sql(finish_one)
        database.sql("create index history_late on only tenure.history (queue, id) where key is not null")
        [(partitions,)] = database.sql(without)
        assert partitions > 7
        database.sql("select tenure.make_history(7)")
        assert database.sql(without) == [(1,)]
        database.sql("truncate tenure.history")
        database.sql("select tenure.make_history(7)")
        assert database.sql(without) == [(0,)]
        assert database.sql("select indisvalid from pg_index where indexrelid = 'tenure.history_late'::regclass") == [(True,)]
