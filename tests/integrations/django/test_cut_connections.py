"""The server ends connections of the ORM while jobs run: only the jobs that were cut off fail, and they are retried."""

from __future__ import annotations

import sys

import pytest

from tests.integrations.django.test_handlers import enqueue
from tests.waiting import until

pytestmark = pytest.mark.slow

EVERY = 20
"""Completed jobs between two connections that are ended."""

JOBS = 1000

ENOUGH = 45
"""Of 49 connections: the last ones may come too late."""

DATABASES = {
    "a connection for each job": {"CONN_MAX_AGE": 0},
    "kept connections": {"CONN_MAX_AGE": None},
    "a pool": {"OPTIONS": {"pool": {"min_size": 2, "max_size": 4, "timeout": 20}}},
}
CUT = """
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where datname = current_database() and application_name = 'orm' order by random() limit 1"""
COMPLETED = "select count(*) from tenure.history where kind = %s and state = 'completed'"
FAILED_ATTEMPTS = "select sum(attempt - 1)::int from tenure.history where kind = %s"


@pytest.mark.parametrize("kind", ["write", "write_in_process"])
@pytest.mark.parametrize("database", DATABASES)
async def test_only_jobs_that_were_cut_off_fail_and_they_are_retried(shop, sql, kind, database):
    varied = shop.varied(database=DATABASES[database])
    enqueue(varied, f"app.enqueue_many_sync([jobs.{kind}.call(number) for number in range({JOBS})])")

    def completed() -> int:
        return sql(COMPLETED, kind)[0][0]

    def cut_one() -> str:
        """After the last job there may be no connection left."""
        return "cut" if sql(CUT) else "over" if completed() == JOBS else ""

    cuts = 0
    with varied.worker("--concurrency", "4"):
        for reached in range(EVERY, JOBS, EVERY):
            await until(lambda reached=reached: completed() >= reached)
            cuts += await until(cut_one) == "cut"
        await until(completed, is_=JOBS)
    assert sql("select state, count(*) from tenure.all_jobs group by state") == [("completed", JOBS)]
    assert cuts >= ENOUGH
    [(failed,)] = sql(FAILED_ATTEMPTS, kind)
    # At most: to end a connection that no job uses at that moment fails none, so how many failed is not asserted.
    assert failed <= cuts, f"{failed} attempts failed, but only {cuts} connections were ended"
    # Each of these statements commits by itself, so every job wrote its last row once it was through.
    assert sql("select count(distinct label) from orders_order where state like 'attempt%'") == [(JOBS,)]
    sys.stdout.write(f"{kind}, {database}: {JOBS} jobs, {cuts} connections ended, {failed} attempts cut off and retried\n")
