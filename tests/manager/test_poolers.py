"""Behind a transaction pooler: no prepared statements, no session settings, no LISTEN; jobs run all the same."""

from __future__ import annotations

import pytest

from tenure.chaos.pooler import PGBOUNCER, Pooler
from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow

POOLED = {"TENURE_POOLED": "1"}
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed (apt-get install pgbouncer)")
DEAF = "LISTEN delivers nothing"


@pytest.fixture
async def pooled_dsn(dsn, tmp_path):
    """The same database through PgBouncer in transaction mode."""
    pooler = Pooler(dsn, tmp_path)
    pooler.start()
    try:
        await until(lambda: pooler.answers)
        yield pooler.dsn
    finally:
        pooler.kill()


@needs_pgbouncer
async def test_behind_pgbouncer_deafness_is_said_once_and_jobs_run_by_polling(start, run_log, queue, pooled_dsn):
    ids = queue.add("quick", 50)
    worker = start("--concurrency", "5", dsn=pooled_dsn, env=POOLED)

    await queue.completed(*ids, within=20)
    # Once by the supervisor and once by its child: each process has ears of its own.
    await until(lambda: worker.said.count(DEAF), is_=2)
    await queue.completed(*queue.add("quick", 20))

    assert worker.said.count(DEAF) == 2
    assert sorted(set(run_log.runs(*ids))) == [1]
    assert "prepared statement" not in worker.said
    worker.terminate()
    await until(lambda: worker.process.poll() is not None)
    assert worker.process.returncode == 0
    assert queue.sql("select id from tenure.workers") == []


@needs_pgbouncer
async def test_behind_pgbouncer_a_direct_line_for_listening_hears(start, run_log, queue, pooled_dsn, dsn):
    worker = start(dsn=pooled_dsn, env={**POOLED, "TENURE_LISTEN_DSN": dsn})
    await serving(worker)
    await queue.completed(*queue.add("quick", 5))
    # The self-test of the ears is over when it has had its two seconds; a failed one would be logged by then.
    await until(lambda: queue.sql("select 1 from tenure.workers where started_at < clock_timestamp() - interval '3 s'"))
    assert DEAF not in worker.said


@needs_pgbouncer
async def test_transactions_of_handlers_that_take_all_connections_of_a_pooler_come_to_an_end(start, queue, dsn, tmp_path):
    """What a run said before is written on another connection: there may be none for as long as these are open."""
    pooler = Pooler(dsn, tmp_path, size=2)
    pooler.start()
    try:
        ids = queue.add("talks_in_a_transaction", 8)
        await until(lambda: pooler.answers)
        start("--concurrency", "8", dsn=pooler.dsn, env=POOLED)
        await queue.completed(*ids, within=100)
    finally:
        pooler.kill()


async def test_pooled_without_a_pooler_prepares_nothing_and_works(start, queue):
    worker = start(env=POOLED)
    await serving(worker)
    ids = queue.add("quick", 50)
    await queue.completed(*ids)
    worker.terminate()
    await until(lambda: worker.process.poll() is not None)
    assert worker.process.returncode == 0
