"""Which transactions of a worker wait for the disk. That nothing is lost in a crash: tests/outages/test_durability.py."""

from __future__ import annotations

from psycopg import sql

from tenure import Retry, RetryAfter
from tests.store.database import Database
from tests.waiting import until
from tests.worker.serving import serving

RECORD_COMMITS = """
    create table public.commits (state text, waits_for_the_disk text);
    create function public.record_commit() returns trigger language plpgsql as
        'begin insert into public.commits values (new.state, current_setting(''synchronous_commit'')); return null; end';
    create trigger record_commit after update on tenure.jobs for each row execute function public.record_commit();
    create trigger record_commit after insert on tenure.history for each row execute function public.record_commit()"""


async def test_outcomes_are_written_by_transactions_that_wait_for_the_disk(app, fresh_dsn):
    """A claim need not: one that is lost in a crash never happened."""
    app.configure(dsn=fresh_dsn)
    with Database(fresh_dsn) as database:
        await check_commits(app, database)
    await app.close()


async def check_commits(app, database):
    [(name,)] = database.sql("select current_database()")
    database.connection.execute(sql.SQL("alter database {} set synchronous_commit = 'on'").format(sql.Identifier(name)))
    database.connection.execute(RECORD_COMMITS.encode(), prepare=False)

    @app.job
    async def complete() -> None: ...

    @app.job
    async def fail() -> None:
        raise RetryAfter("1h")

    @app.job(retry=Retry(max_attempts=1))
    async def fail_for_good() -> None:
        raise ValueError("on purpose")

    commits = "select distinct state, waits_for_the_disk from public.commits order by state"
    expected = [("completed", "on"), ("dead_letter", "on"), ("retry", "on"), ("running", "off")]
    async with serving(app):
        for job in (complete, fail, fail_for_good):
            await job.enqueue()
        await until(lambda: len(database.sql(commits)), is_=len(expected))
        assert database.sql(commits) == expected
