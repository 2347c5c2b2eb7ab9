"""Many claimers at the same time, some of them killed: no limit is ever exceeded, says an observer who cannot be deceived."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from threading import Barrier, Thread

import psycopg
import pytest

from tenure.store import claims, jobs
from tenure.store.faults import is_outage
from tests.limits.limits_database import LimitsDatabase
from tests.manager.worker_helpers import serving
from tests.processes import worker_process
from tests.waiting import until

pytestmark = pytest.mark.slow

SECONDS = 4.0

APP = """
import asyncio, random
from tenure import Limit, Rate, Tenure

app = Tenure()

@app.job(concurrency=[Limit(4), Limit(2, per="tenant_id")], max_attempts=50)
async def work(tenant_id: str) -> None:
    await asyncio.sleep(random.uniform(0, 0.05))

@app.job(rate=Rate(20, "1s"))
async def paced(tenant_id: str) -> None:
    pass
"""


def test_claims_settlements_crashes_and_changes_from_all_sides(dsn, database):
    database.limit("kind:work", concurrency=5, concurrency_per_key=2, key="tenant_id")
    database.limit("queue:default", concurrency=6)
    for tenant in "abcd":
        database.of(tenant, 400)
        database.of(tenant, 100, kind="other")
    database.observe()
    start, ends, served = Barrier(8), time.monotonic() + SECONDS, []

    def claim_and_settle(number: int) -> None:
        draws = random.Random(number)
        with LimitsDatabase(dsn) as mine:
            worker, after = mine.worker(), ""
            start.wait()
            while time.monotonic() < ends:
                taken = mine.take(worker, limit=draws.randint(1, 6), after=after)
                after = (taken.told.get("cursors") or {}).get("default", after)
                served.extend(taken.ids)
                fate = draws.random()
                if not taken.ids:
                    continue
                if fate < 0.1:
                    mine.condemn(worker)  # it died with its jobs in its hands
                    mine.run(jobs.return_jobs(worker))
                    worker = mine.worker()
                elif fate < 0.2:
                    mine.run(claims.disown(taken.held, ["default"]))
                elif fate < 0.4:
                    mine.run(jobs.move(taken.outcomes(state="pending", refund=1)))
                else:
                    mine.run(jobs.finish(taken.finished()))

    threads = [Thread(target=claim_and_settle, args=[number]) for number in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(served) >= 50
        by_kind, by_queue = database.most_seen("kind"), database.most_seen("queue")
        assert 3 <= by_kind["work"] <= 5, "never more, and it was used"
        assert by_queue["default"] <= 6
        assert database.sql("select max(jobs) from observer.seen where kind = 'work'") <= [(2,)]
    finally:
        database.blind()


async def test_workers_killed_in_the_middle_exceed_no_limit(project, server_dsn, fresh_dsn):
    (project / "jobs.py").write_text(APP)
    with LimitsDatabase(fresh_dsn) as database:
        database.observe()
        database.limit("kind:work", concurrency=4, concurrency_per_key=2, key="tenant_id")
        database.limit("kind:paced", rate=[20, 1.0])
        for tenant in "abc":
            database.of(tenant, 200, max_attempts=50)
            database.of(tenant, 40, kind="paced")
        with (
            worker_process(project, fresh_dsn, "-p", "2", "-c", "5") as one,
            worker_process(project, fresh_dsn, "-p", "2") as two,
        ):
            await serving(one, 2)
            await serving(two, 2)
            draws = random.Random(7)
            for _ in range(6):
                done = database.sql("select count(*) from tenure.history")[0][0]
                victim = draws.choice([*one.children(), *two.children()])
                os.kill(victim, signal.SIGKILL)
                await until(lambda done=done: database.sql("select count(*) from tenure.history")[0][0] > done + 20)
            await until(
                lambda: database.sql("select count(*) from tenure.jobs where state <> 'dead_letter'"), is_=[(0,)], within=60
            )
        assert database.sql("select max(jobs) from observer.seen where kind = 'work'") == [(2,)]
        assert 2 <= database.most_seen("kind")["work"] <= 4
        rows = database.sql("select extract(epoch from at)::float8 from observer.starts where kind = 'paced' order by at")
        starts = [row[0] for row in rows]
        assert len(starts) >= 120
        assert all(later - earlier >= 1 for earlier, later in zip(starts, starts[20:], strict=False))


def test_a_claim_that_is_cut_off_leaves_nothing_counted(dsn, database):
    """The connection breaks in the middle of the transaction: lock, jobs and starts are as they were."""
    database.limit("kind:work", concurrency=1, rate=[1, 60])
    database.many(2)
    worker = database.worker()
    cut_off = LimitsDatabase(dsn)
    cut_off.connection.execute("begin")
    assert cut_off.lock() == ["kind:work"]
    assert len(cut_off.take_locked(worker, ["kind:work"]).ids) == 1
    pid = cut_off.connection.info.backend_pid
    database.sql("select pg_terminate_backend(%s, 5000)", pid)
    try:
        assert len(database.take(worker).ids) == 1
    finally:
        with suppress(psycopg.Error):
            cut_off.connection.close()


async def test_a_claimer_that_falls_asleep_holding_a_limit_loses_it(dsn, database):
    """Its process was stopped, or a handler blocks its event loop, between the lock and the claim."""
    database.limit("kind:work", concurrency=5)
    database.many(2)
    worker = database.worker()
    asleep = LimitsDatabase(dsn)
    asleep.connection.execute("begin")
    assert asleep.lock() == ["kind:work"]
    assert database.take(worker).ids == []
    assert len(await until(lambda: database.take(worker).ids)) == 2
    with pytest.raises(psycopg.Error) as told:
        asleep.take_locked(worker, ["kind:work"])
    assert is_outage(told.value), "a claimer that wakes up starts again"
    asleep.connection.close()
