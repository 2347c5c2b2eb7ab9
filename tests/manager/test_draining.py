"""Workers that are taken out of service: they finish what they run, and claim nothing until they are resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator

import pytest

from tenure import Tenure
from tenure.client.client import Client
from tests.manager.worker_helpers import serving
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
async def client(app: Tenure) -> AsyncIterator[Client]:
    yield app.client()
    await app.close()


def worker_ids(queue) -> set[str]:
    return {row[0] for row in queue.sql("select id::text from tenure.workers where died_at is null")}


@pytest.mark.parametrize("limited", [False, True])
async def test_a_draining_worker_finishes_its_jobs_and_claims_no_more_until_it_is_resumed(start, run_log, queue, client, limited):
    if limited:
        await client.set_limit("kind:quick", concurrency=5)
    first = start("--concurrency", "2", "--processes", "1")
    await serving(first)
    [drained] = worker_ids(queue)
    running = queue.add("until_released", 2)
    await until(lambda: len(run_log.entries()), is_=2)

    assert [str(one) for one in await client.drain_workers(drained)] == [drained]
    waiting = queue.add("quick", 3)
    run_log.release()
    await queue.completed(*running)
    await until(lambda: _states(client), is_={drained: "drained"})
    assert queue.states(*waiting) == {"pending": 3}

    second = start("--concurrency", "2", "--processes", "1")
    await queue.completed(*waiting)
    assert {run["pid"] for job in waiting for run in run_log.entries(job=job)} <= set(second.children())

    second.terminate()
    await until(second.process.poll, is_=0)
    more = queue.add("quick", 3)
    await client.resume_workers(drained)
    await queue.completed(*more)
    assert await _states(client) == {drained: "alive"}


async def test_a_process_that_replaces_a_draining_one_drains_too(start, queue, client):
    worker = start("--processes", "2")
    await serving(worker)
    await until(lambda: len(worker_ids(queue)), is_=2)
    before = worker_ids(queue)
    assert {str(one) for one in await client.drain_workers(min(before))} == before

    os.kill(worker.children()[0], signal.SIGKILL)
    await until(lambda: bool(worker_ids(queue) - before) and len(worker_ids(queue)) == 2)

    assert set((await _states(client)).values()) == {"drained"}
    ids = queue.add("quick", 2)
    assert (await client.explain(ids[0])).reasons[0].code == "draining"
    await client.resume_workers(min(worker_ids(queue)))
    await queue.completed(*ids)


async def test_a_pool_whose_processes_drain_is_not_scaled(start, queue, client):
    env = {"TENURE_WORKERS_SCALE_INTERVAL_MS": "100", "TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": "6"}
    worker = start("--processes", "1", "--max-processes", "3", "--concurrency", "1", command="up", env=env)
    await serving(worker)
    [drained] = worker_ids(queue)
    await client.drain_workers(drained)
    await until(lambda: _heartbeats_since_drain(queue), is_=True)
    ids = queue.add("quick", 30)
    beat = queue.sql("select heartbeat_at from tenure.workers")[0][0]
    await until(lambda: queue.sql("select heartbeat_at from tenure.workers")[0][0] > beat)
    assert worker_ids(queue) == {drained}
    await client.resume_workers(drained)
    await queue.completed(*ids)


async def _states(client) -> dict[str, str]:
    return {str(worker.id): worker.state for worker in await client.workers() if worker.alive}


def _heartbeats_since_drain(queue) -> bool:
    return queue.sql("select bool_and(heartbeat_at > draining_at) from tenure.workers")[0][0]
