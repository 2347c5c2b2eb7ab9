"""Jobs that every worker runs besides those of its app."""

from __future__ import annotations

import os
import signal

import psycopg

from tenure.client.bulk import BULK
from tests.manager.worker_helpers import serving
from tests.waiting import until

WITHOUT_JOBS = """
from tenure import Tenure

app = Tenure()


@app.middleware
async def fails(ctx, call_next):
    raise ValueError
"""


async def test_a_bulk_action_whose_worker_is_killed_is_finished_by_another(start, queue, app, dsn):
    worker = start()
    await serving(worker)
    ids = queue.add("strange", 1200)
    given = {"action": "cancel", "filter": {"kind": "strange"}, "by": "ann"}
    with psycopg.connect(dsn) as other:
        other.execute("select from tenure.jobs where id = %s for update", [min(ids)])
        handle = await app.enqueue(BULK, given)
        await until(lambda: queue.states(*ids).get("canceled"), is_=1199)
        os.kill(worker.children()[0], signal.SIGKILL)
        await until(lambda: queue.of(handle.id, "crashes"), is_=(1,))
    assert await handle.result(timeout=30) == {"matched": 1, "changed": 1}
    assert queue.states(*ids) == {"canceled": 1200}
    await app.close()


async def test_a_worker_of_an_app_without_jobs_carries_out_bulk_actions_and_no_middleware_is_around_them(
    start, project, app, queue
):
    (project / "jobs.py").write_text(WITHOUT_JOBS)
    await serving(start())
    [job] = queue.add("strange")
    handle = await app.enqueue(BULK, {"action": "cancel", "filter": {"kind": "strange"}})
    assert await handle.result(timeout=30) == {"matched": 1, "changed": 1}
    assert queue.states(job) == {"canceled": 1}
    refused = await app.enqueue(BULK, {"action": "cancel", "filter": {}})
    await until(lambda: queue.of(refused.id, "state"), is_=("failed",))
    await app.close()
