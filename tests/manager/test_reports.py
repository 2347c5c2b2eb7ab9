"""What a worker says when PostgreSQL refuses, is locked or is the wrong one: the true reason, once, with the way out."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.manager.worker_helpers import SHORT_LEASE, serving
from tests.waiting import until

pytestmark = pytest.mark.slow

EXIT_SETTINGS = 3


@pytest.mark.parametrize(
    ("wrong", "texts"),
    [
        ({"dbname": "no_such_database"}, ["the database does not exist", "no_such_database", "check the DSN"]),
        ({"user": "no_such_role"}, ["the role does not exist", "no_such_role", "check the user in the DSN"]),
    ],
)
async def test_a_worker_that_starts_with_the_wrong_dsn_reports_why_and_ends(start, run_log, dsn, wrong, texts):
    worker = start(dsn=make_conninfo(dsn, **wrong))
    await until(lambda: worker.process.poll() is not None)
    assert worker.process.returncode == EXIT_SETTINGS
    assert [text for text in texts if text not in worker.said] == [], worker.said
    assert "Traceback" not in worker.said


@pytest.fixture
def role(sql, dsn):
    """A login role with all rights, of which some are taken away."""
    name = f"clerk_{uuid4().hex[:8]}"
    sql(f"create role {name} login")
    sql(f"grant usage on schema tenure to {name}")
    for what in ("tables", "sequences", "functions"):
        sql(f"grant all on all {what} in schema tenure to {name}")
    yield name
    sql(f"drop owned by {name}")
    sql(f"drop role {name}")


async def test_a_right_that_is_taken_away_is_reported_once_and_once_when_it_is_back(start, run_log, queue, dsn, role):
    worker = start(dsn=make_conninfo(dsn, user=role), env=SHORT_LEASE)
    await serving(worker)
    await queue.completed(*queue.add("quick", 5))
    running = queue.add("until_released", 3)
    await until(lambda: run_log.runs(*running), is_=[1] * 3)

    queue.sql(f"revoke select, update, delete on tenure.jobs from {role}")
    run_log.release()
    waiting = queue.add("quick", 5)
    await until(lambda: "permission denied for table jobs" in worker.said)
    beats = "select heartbeat_at from tenure.workers"
    for _ in range(5):  # the lease is renewed all the same, many retries long
        before = queue.sql(beats)
        await until(lambda: queue.sql(beats) != before)  # noqa: B023
    assert "tenure sql --roles" in worker.said
    assert "Traceback" not in worker.said
    assert worker.said.count("permission denied for table jobs; `tenure sql --roles` prints") <= 2 * 4  # processes, and who asks
    queue.sql(f"grant select, update, delete on tenure.jobs to {role}")

    await queue.completed(*waiting, within=20)
    await queue.completed(*running, within=45)  # as they ended: not run again, and not failed
    await until(lambda: "works again after" in worker.said)  # when the last of the statements that failed succeeds
    assert run_log.runs(*running) == [1] * 3
    assert "lost its lease" not in worker.said


async def test_a_lock_that_blocks_a_worker_is_reported_with_its_holder_and_costs_no_lease(start, run_log, queue, dsn):
    worker = start(env=SHORT_LEASE)
    await serving(worker)
    [job] = queue.add("until_released")
    await until(lambda: run_log.runs(job), is_=[1])

    with psycopg.connect(dsn, application_name="a dba") as dba:
        dba.execute("lock table tenure.jobs in access exclusive mode")
        pid = dba.info.backend_pid
        await until(lambda: f"for a lock of session {pid} (a dba, " in worker.said)
        beats = "select heartbeat_at, expires_at > clock_timestamp() from tenure.workers"
        for _ in range(4):  # longer than a lease
            [(before, _)] = queue.sql(beats)
            await until(lambda: queue.sql(beats)[0][0] > before)  # noqa: B023
            assert queue.sql(beats)[0][1]
    run_log.release()

    await queue.completed(job)
    await until(lambda: "is no longer blocked" in worker.said)
    assert run_log.runs(job) == [1]
    assert "lost its lease" not in worker.said
    assert "jobs/claim_jobs has waited" in worker.said
