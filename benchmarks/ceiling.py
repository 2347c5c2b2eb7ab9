"""(a) What PostgreSQL itself can do: the worker's own claim and settle statements, one after the other, in a bare loop."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from uuid import UUID, uuid4

from benchmarks.drain import enqueue_jobs
from benchmarks.jobs import workload
from benchmarks.server import Server
from tenure.manager.loops import run_loop
from tenure.store import jobs, workers
from tenure.store.jobs import FinishedRuns
from tenure.store.link import Link
from tenure.store.query import Query, array_literal
from tenure.store.target import DatabaseTarget
from tenure.store.workers import Registration

PRIORITY = 50


@dataclass(frozen=True)
class Turn:
    """One claim and the settling of what it gives, ready to be sent."""

    claim: Query[jobs.ClaimRow]
    finish: Query[jobs.SettledRow]
    size: int


def measure(server: Server, count: int, batch: int) -> float:
    """Jobs a second."""
    with server.database() as dsn:
        server.checkpoint()
        ids = asyncio.run(enqueue_jobs(dsn, count))
        time.sleep(0.5)
        return count / run_loop(_loop(dsn, ids, batch))


async def _loop(dsn: str, ids: list[UUID], batch: int) -> float:
    place = DatabaseTarget.at(dsn)
    # As the worker has them: a claim need not wait for the disk, a settlement must. Never both at a time.
    claims, settles = Link(place, "claim", hot=True, durable=False), Link(place, "settle", hot=True)
    try:
        worker_id = str(uuid4())
        await claims.fetch(workers.register(_registration(worker_id), ttl=3600.0))
        await settles.fetch(jobs.finish(FinishedRuns("{}", "{}", "{}")))
        turns = _turns(worker_id, ids, batch)
        began = time.perf_counter()
        for turn in turns:
            claimed = await claims.fetch(turn.claim)
            finished = await settles.fetch(turn.finish)
            if not len(claimed) - 1 == len(finished) == turn.size:
                raise RuntimeError(f"{len(claimed) - 1} claimed and {len(finished)} finished of {turn.size}")
        return time.perf_counter() - began
    finally:
        await claims.close()
        await settles.close()


def _turns(worker_id: str, ids: list[UUID], batch: int) -> list[Turn]:
    """In a fresh database the positions are 1, 2, 3 ..., and jobs are claimed in the order they were enqueued."""
    kinds = array_literal(list(workload(None).app.kinds))
    turns = []
    for first in range(0, len(ids), batch):
        part = ids[first : first + batch]
        claim_id = str(uuid4())
        claim = jobs.claim(
            worker_id=worker_id,
            claim_id=claim_id,
            lanes=_lanes(first + 1),
            limit=len(part),
            kinds=kinds,
            capabilities="{}",
            leases="{}",
            which="healthy",
        )
        outcomes = json.dumps({str(job): [claim_id] for job in part}, separators=(",", ":"))
        runs = FinishedRuns(array_literal([str(job) for job in part]), array_literal([claim_id]), outcomes)
        turns.append(Turn(claim, jobs.finish(runs), len(part)))
    return turns


def _lanes(start: int) -> str:
    """What a worker sends whose cursor is at `start`: its own priority, and the gaps above and below it."""
    lanes = [(100, PRIORITY + 1, 0), (PRIORITY, PRIORITY, start), (PRIORITY - 1, 0, 0)]
    names = ("ordinal", "queue", "high", "low", "start")
    return json.dumps([dict(zip(names, (place, "default", *lane), strict=True)) for place, lane in enumerate(lanes)])


def _registration(worker_id: str) -> Registration:
    return Registration(
        id=worker_id,
        supervisor_id=worker_id,
        host="benchmark",
        pid=0,
        queues=["default"],
        kinds=["noop"],
        capabilities=[],
        concurrency=1,
        version="benchmark",
    )
