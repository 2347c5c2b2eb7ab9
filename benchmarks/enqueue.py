"""(b) Enqueuing: one job after the other against a bare insert loop, many tasks at once, and in bulk."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

import psycopg

from benchmarks import bare
from benchmarks.jobs import PAYLOAD, Workload, workload
from benchmarks.server import Probe, Server
from benchmarks.sizes import Sizes
from tenure.model.ids import uuid7

BLOCK = 100  # jobs after which ours and bare take turns, so that noise affects both
WARMUP = 20


def measure(server: Server, sizes: Sizes) -> dict[str, float]:
    """Jobs a second of each way."""
    found: dict[str, float] = {}
    with server.database() as dsn:
        bare.make_table(dsn)
        found |= asyncio.run(_sequential(dsn, sizes.singles))
        found |= _sequential_sync(dsn, sizes.singles)
        found |= asyncio.run(_borrowed(dsn, sizes.singles))
        found["concurrent"] = asyncio.run(_concurrent(dsn, sizes.concurrent, sizes.tasks))
    for name, prepared in (("bulk", False), ("bulk_prepared", True)):
        with server.database() as dsn:
            found[name] = asyncio.run(_bulk(dsn, sizes.jobs, prepared=prepared))
    return found


async def _sequential(dsn: str, count: int) -> dict[str, float]:
    work, ours, theirs = workload(dsn), 0.0, 0.0
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        cursor = connection.cursor()

        async def enqueue(times: int) -> float:
            began = time.perf_counter()
            for _ in range(times):
                await work.noop.enqueue(**PAYLOAD)
            return time.perf_counter() - began

        async def insert(ids: list[UUID]) -> float:
            began = time.perf_counter()
            for job in ids:
                await cursor.execute(bare.INSERT, (job, bare.INPUT))
            return time.perf_counter() - began

        await enqueue(WARMUP)
        await insert(_ids(WARMUP))
        for _ in range(count // BLOCK):
            ours += await enqueue(BLOCK)
            theirs += await insert(_ids(BLOCK))
    await work.app.close()
    return _rates("single", count, ours, theirs)


def _sequential_sync(dsn: str, count: int) -> dict[str, float]:
    work, ours, theirs = workload(dsn), 0.0, 0.0
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        cursor = connection.cursor()

        def enqueue(times: int) -> float:
            began = time.perf_counter()
            for _ in range(times):
                work.noop.enqueue_sync(**PAYLOAD)
            return time.perf_counter() - began

        def insert(ids: list[UUID]) -> float:
            began = time.perf_counter()
            for job in ids:
                cursor.execute(bare.INSERT.encode(), (job, bare.INPUT))
            return time.perf_counter() - began

        enqueue(WARMUP)
        insert(_ids(WARMUP))
        for _ in range(count // BLOCK):
            ours += enqueue(BLOCK)
            theirs += insert(_ids(BLOCK))
    return _rates("single_sync", count, ours, theirs)


async def _borrowed(dsn: str, count: int) -> dict[str, float]:
    """Many jobs in a transaction of the caller, against as many bare inserts in one."""
    work, ours, theirs = workload(dsn), 0.0, 0.0
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        cursor = connection.cursor()

        async def enqueue(times: int) -> float:
            began = time.perf_counter()
            async with connection.transaction():
                for _ in range(times):
                    await work.noop.using(conn=connection).enqueue(**PAYLOAD)
            return time.perf_counter() - began

        async def insert(ids: list[UUID]) -> float:
            began = time.perf_counter()
            async with connection.transaction():
                for job in ids:
                    await cursor.execute(bare.INSERT, (job, bare.INPUT))
            return time.perf_counter() - began

        await enqueue(WARMUP)
        await insert(_ids(WARMUP))
        for _ in range(count // BLOCK):
            ours += await enqueue(BLOCK)
            theirs += await insert(_ids(BLOCK))
    await work.app.close()
    return _rates("borrowed", count, ours, theirs)


async def _concurrent(dsn: str, count: int, tasks: int) -> float:
    work = workload(dsn)

    async def loop(times: int) -> None:
        for _ in range(times):
            await work.noop.enqueue(**PAYLOAD)

    await loop(WARMUP)
    began = time.perf_counter()
    await asyncio.gather(*(loop(count // tasks) for _ in range(tasks)))
    took = time.perf_counter() - began
    await work.app.close()
    return count // tasks * tasks / took


async def _bulk(dsn: str, count: int, *, prepared: bool) -> float:
    work: Workload = workload(dsn)
    await work.app.enqueue_many(work.calls(count))
    _use_up(dsn)
    calls = list(work.calls(count)) if prepared else None
    began = time.perf_counter()
    await work.app.enqueue_many(work.calls(count) if calls is None else calls)
    took = time.perf_counter() - began
    await work.app.close()
    return count / took


def _use_up(dsn: str) -> None:
    """A queue that has been in use writes into pages it has; a new one makes them first, which is not what is measured."""
    with Probe(dsn) as probe:
        probe.rows("delete from tenure.jobs")
        probe.rows("vacuum (truncate false) tenure.jobs")


def _ids(count: int) -> list[UUID]:
    return [uuid7() for _ in range(count)]


def _rates(name: str, count: int, ours: float, theirs: float) -> dict[str, float]:
    done = count // BLOCK * BLOCK
    return {name: done / ours, f"{name}_bare": done / theirs}
