"""kill -9 at every point from the first write to the commit: the job is requeued, and its writes are applied exactly once."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from tests.manager.worker_helpers import ended, serving
from tests.processes import worker_process
from tests.transactions import handlers
from tests.transactions.handlers import POINTS

pytestmark = pytest.mark.slow

BEFORE_THE_COMMIT = ["written", "handed on", "leaving", "left"]


@pytest.fixture
def start(project, dsn, shop, points, tmp_path):
    shutil.copy(handlers.__file__, project / "jobs.py")
    return lambda: worker_process(project, dsn, "--queues", "default", env={POINTS: str(tmp_path)})


def enqueue(shop, kind, name):
    job = json.dumps([{"kind": kind, "input": {"name": name}}])
    [(job_id,)] = shop.sql("select id from tenure.enqueue(%s)", job)
    shop.sql("select pg_notify('tenure', 'jobs default')")
    return str(job_id)


async def held(shop, points, kind, point, name=None):
    """A job of this kind, waiting at this point: its id and the process it runs in."""
    points.hold(point, name or point)
    job = enqueue(shop, kind, name or point)
    return job, (await points.reached(point, job=job))["pid"]


@pytest.mark.parametrize("executor", handlers.EXECUTORS)
async def test_a_handler_killed_anywhere_before_the_commit_is_run_again_and_counts_once(start, shop, points, executor):
    with start() as worker:
        await serving(worker)
        waiting = {point: await held(shop, points, executor, point) for point in BEFORE_THE_COMMIT}
        for pid in {pid for _, pid in waiting.values()}:
            os.kill(pid, signal.SIGKILL)

        for point, (job, _) in waiting.items():
            await shop.comes_to(point, 1, 1, "completed")
            assert shop.of(point, "attempt", "crashes", "fence", "output") == (1, 1, 2, f"paid {point}")
            assert len(shop.transactions(point)) == 1
            assert [entry["fence"] for entry in points.passed("left", job=job)] == ([1, 2] if point == "left" else [2])
        assert shop.sql("select what, count(*) from tenure.incidents group by 1") == [("crashed", len(waiting))]


async def test_a_handler_in_a_process_of_its_own_ends_with_its_worker_and_counts_once(start, shop, points):
    with start() as worker:
        [child] = await serving(worker)
        waiting = {point: await held(shop, points, "in_process", point) for point in ("written", "left")}
        os.kill(child, signal.SIGKILL)

        await ended(*(pid for _, pid in waiting.values()), within=10)
        for point in waiting:
            await shop.comes_to(point, 1, 1, "completed")
            assert shop.of(point, "attempt", "crashes", "fence") == (1, 1, 2)


async def test_a_session_of_the_handlers_own_killed_before_its_commit_is_run_again_and_after_it_is_not(start, shop, points):
    kind = "with_own_session"
    with start() as worker:
        await serving(worker)
        waiting = {point: await held(shop, points, kind, point) for point in ("written", "leaving", "left")}
        assert shop.seen("left") == (1, 1, "completed")
        [pid] = {pid for _, pid in waiting.values()}
        os.kill(pid, signal.SIGKILL)

        for point in waiting:
            await shop.comes_to(point, 1, 1, "completed")
    for point, lives in {"written": (1, 2), "leaving": (1, 2), "left": (0, 1)}.items():
        assert shop.of(point, "crashes", "fence", "attempt", "output") == (*lives, 1, f"paid {point}")
        assert len(points.passed("written", job=waiting[point][0])) == lives[1]
