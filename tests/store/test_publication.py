"""A publication of all tables (change data capture) must not stop anything: PostgreSQL refuses every update and delete of a
published table that has no replica identity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import pytest

from tenure.leader.duties.cleaner import Cleaner
from tenure.leader.duties.rollup import Rollup
from tenure.store import history, jobs
from tenure.store.duty_link import DutyLink
from tenure.store.target import DatabaseTarget
from tests.store.database import Database

DAY = 86400.0


@pytest.fixture
def database(fresh_dsn: str) -> Iterator[Database]:
    with Database(fresh_dsn) as database:
        database.sql("create publication everything for all tables")
        yield database


@pytest.fixture
async def link(fresh_dsn: str) -> AsyncIterator[DutyLink]:
    link = DutyLink(DatabaseTarget.at(fresh_dsn))
    yield link
    await link.close()


def finished(database: Database) -> str:
    database.enqueue({})
    claim = database.claim(database.worker())
    database.run(jobs.finish(claim.finished()))
    return claim.ids[0]


def test_every_table_has_a_replica_identity(database):
    without = """
        select c.relname from pg_class c
         where c.relnamespace = 'tenure'::regnamespace and c.relkind in ('r', 'p') and c.relreplident = 'd'
           and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)"""
    assert database.sql(without) == []
    term = database.term("cleaner")
    database.run(history.make(term, days_ahead=9))
    assert database.sql(without) == []
    for (day,) in database.sql("select relname from pg_class where relname ~ '^history_[0-9]{8}$' and relkind = 'r'"):
        database.sql(f"drop table tenure.{day}")
    database.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) select gen_random_uuid(), 1, now(), now(), 1, 3, 50, 0, 'completed', 'work', 'default', '{}'"
        " from generate_series(1, 1100)"
    )
    database.run(history.make(term, days_ahead=9))
    assert database.sql(without) == []


async def test_counts_are_merged_history_is_cleaned_and_partitions_are_made(database, link):
    finished(database)
    assert (await Rollup().run_once(link, database.term("rollup"))).touched > 0
    database.sql(
        "insert into tenure.incidents (job_id, what, at) values (gen_random_uuid(), 'failed', now() - interval '30 days')"
    )
    database.sql("insert into tenure.retentions values ('work', '0 s')")
    report = await Cleaner(7 * DAY, 30 * DAY).run_once(link, database.term("cleaner"))
    assert (report.holds, report.findings) == (True, [])
    assert database.sql("select count(*) from tenure.incidents union all select count(*) from tenure.history") == [(0,), (0,)]


def test_finished_jobs_can_be_deleted(database):
    job_id = finished(database)
    database.run(jobs.delete([UUID(job_id)]))
    assert database.sql("select count(*) from tenure.history") == [(0,)]


def test_what_the_default_partition_caught_moves_to_its_day(database):
    database.sql("drop table tenure.history_" + database.sql("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")[0][0])
    finished(database)
    assert database.run(history.make(database.term("cleaner"), days_ahead=7)) == [(1,)]
    assert database.sql("select count(*) from tenure.history_default union all select count(*) from tenure.history") == [
        (0,),
        (1,),
    ]
