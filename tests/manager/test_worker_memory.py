"""The memory of each worker process, as its supervisor measures it."""

from __future__ import annotations

import os
from pathlib import Path

from tenure import Tenure
from tests.manager.worker_helpers import Queue, serving
from tests.waiting import until


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def has_loaded(pid: int, library: str) -> bool:
    return library in Path(f"/proc/{pid}/maps").read_text()


async def test_validation_is_loaded_by_the_child_before_it_is_ready_and_never_by_the_supervisor(start, queue: Queue):
    worker = start()
    [child] = await serving(worker)
    assert has_loaded(child, "pydantic_core")  # no job was run: the first ones do not wait for it
    await queue.completed(*queue.add("quick"))
    assert not has_loaded(worker.pid, "pydantic_core")


async def test_a_renewal_stores_the_memory_of_each_process(start, app: Tenure):
    worker = start("--processes", "2", env={"TENURE_WORKERS_LEASE_TIMEOUT_SECONDS": "3"})
    await serving(worker)
    client = app.client()

    async def measured() -> list[int]:
        return sorted(one.pid for one in await client.workers() if one.memory_mb is not None)

    await until(measured, is_=sorted(worker.children()))
    for one in await client.workers():
        assert one.memory_mb is not None
        assert resident_mb(one.pid) / 2 < one.memory_mb < resident_mb(one.pid) * 2  # it may have changed since
    await app.close()
