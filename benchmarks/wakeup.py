"""(d) How long it takes to wake an idle worker: from just before the enqueue to the handler's first line, in another process.

The bare loop waits beside it, in a database of its own, and the two are called in turn: noise meets both.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg

from benchmarks import bare
from benchmarks.drain import await_gone
from benchmarks.jobs import workload
from benchmarks.server import Probe, Server
from benchmarks.workers import ROOT, Worker

SHORTEST, LONGEST = 0.02, 0.08  # seconds between two jobs
WARMUP = 10  # first ones that open connections and are not counted
REST = 1.0  # seconds for the worker to become idle

Ages = list[float]
"""Milliseconds."""


def measure(server: Server, count: int) -> tuple[Ages, Ages]:
    """Of a worker at its defaults, and of the bare loop."""
    count += WARMUP
    with (
        server.database() as ours,
        server.database() as theirs,
        Worker(ours) as worker,
        _bare_listener(theirs, count) as listener,
    ):
        time.sleep(REST)
        ids = asyncio.run(_call_in_turn(ours, theirs, count))
        assert listener.stdout is not None
        bare_ages = [age / 1e6 for age in json.loads(listener.stdout.readline())]
        return _ages(ours, worker, ids)[WARMUP:], bare_ages[WARMUP:]


async def _call_in_turn(ours: str, theirs: str, count: int) -> list[UUID]:
    work = workload(ours)
    ids: list[UUID] = []
    async with await psycopg.AsyncConnection.connect(theirs, autocommit=True, prepare_threshold=0) as connection:
        for _ in range(count):
            handle = await work.stamp.enqueue(sent=time.time_ns())
            ids.append(handle.id)
            await asyncio.sleep(_gap())
            await connection.execute(bare.INSERT_AND_NOTIFY.encode(), (uuid4(), json.dumps({"sent": time.time_ns()})))
            await asyncio.sleep(_gap())
    await work.app.close()
    return ids


def _ages(dsn: str, worker: Worker, ids: list[UUID]) -> Ages:
    with Probe(dsn) as probe:
        await_gone(probe, worker, ids)
        statement = """select (output::text::bigint - (input ->> 'sent')::bigint) / 1e6::float8
                         from tenure.history where kind = 'stamp' order by (input ->> 'sent')::bigint"""
        return [float(age) for (age,) in probe.rows(statement)]


@contextmanager
def _bare_listener(dsn: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Insert and NOTIFY go in one commit; LISTEN and claim happen in this process."""
    bare.make_table(dsn)
    command = [sys.executable, "-m", "benchmarks.bare", dsn, str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout is not None
            if listener.stdout.readline().strip() != "ready":
                raise RuntimeError("the bare listener did not start")
            yield listener
        finally:
            listener.kill()


def _gap() -> float:
    return random.uniform(SHORTEST, LONGEST)
