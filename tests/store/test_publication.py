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
from tests.store.desk import Desk

DAY = 86400.0


@pytest.fixture
def desk(fresh_dsn: str) -> Iterator[Desk]:
    with Desk(fresh_dsn) as desk:
        desk.sql("create publication everything for all tables")
        yield desk


@pytest.fixture
async def link(fresh_dsn: str) -> AsyncIterator[DutyLink]:
    link = DutyLink(DatabaseTarget.at(fresh_dsn))
    yield link
    await link.close()


def finished(desk: Desk) -> str:
    desk.enqueue({})
    claim = desk.claim(desk.worker())
    desk.run(jobs.finish(claim.outcomes()))
    return claim.ids[0]


def test_every_table_has_a_replica_identity(desk):
    without = """
        select c.relname from pg_class c
         where c.relnamespace = 'tenure'::regnamespace and c.relkind in ('r', 'p') and c.relreplident = 'd'
           and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)"""
    assert desk.sql(without) == []
    term = desk.term("cleaner")
    desk.run(history.make(term, days_ahead=9))
    assert desk.sql(without) == []
    for (day,) in desk.sql("select relname from pg_class where relname ~ '^history_[0-9]{8}$' and relkind = 'r'"):
        desk.sql(f"drop table tenure.{day}")
    desk.sql(
        "insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,"
        " queue, input) select gen_random_uuid(), 1, now(), now(), 1, 3, 50, 0, 'completed', 'work', 'default', '{}'"
        " from generate_series(1, 1100)"
    )
    desk.run(history.make(term, days_ahead=9))
    assert desk.sql(without) == []


async def test_counts_are_merged_history_is_cleaned_and_partitions_are_made(desk, link):
    finished(desk)
    assert (await Rollup().run_once(link, desk.term("rollup"))).touched > 0
    desk.sql("insert into tenure.incidents (job_id, what, at) values (gen_random_uuid(), 'failed', now() - interval '30 days')")
    desk.sql("insert into tenure.retentions values ('work', '0 s')")
    report = await Cleaner(7 * DAY, 30 * DAY).run_once(link, desk.term("cleaner"))
    assert (report.holds, report.findings) == (True, [])
    assert desk.sql("select count(*) from tenure.incidents union all select count(*) from tenure.history") == [(0,), (0,)]


def test_finished_jobs_can_be_deleted(desk):
    job_id = finished(desk)
    desk.run(jobs.delete([UUID(job_id)]))
    assert desk.sql("select count(*) from tenure.history") == [(0,)]


def test_what_the_default_partition_caught_moves_to_its_day(desk):
    desk.sql("drop table tenure.history_" + desk.sql("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")[0][0])
    finished(desk)
    assert desk.run(history.make(desk.term("cleaner"), days_ahead=7)) == [(1,)]
    assert desk.sql("select count(*) from tenure.history_default union all select count(*) from tenure.history") == [(0,), (1,)]
