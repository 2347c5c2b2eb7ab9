"""(r) How long a job waits when jobs come at a steady rate, and what that costs: from just before the enqueue to the handler's
first line, at a worker's default settings.

Each client enqueues one job after the other, so each job is one transaction of a client. All other transactions count: the
wake-ups that clients send, and one for each listening connection that receives such a wake-up.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from uuid import UUID

from benchmarks.drain import await_gone
from benchmarks.jobs import workload
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker

PER_CLIENT = 100.0  # jobs a second, in its own app with its own connections
REST = 1.0  # seconds for the worker to become idle
WARMUP = 20  # first jobs that open connections and are not timed

AGES = """select (output::text::bigint - (input ->> 'sent')::bigint) / 1e6::float8
            from tenure.history where kind = 'stamp' order by (input ->> 'sent')::bigint"""


@dataclass(frozen=True, slots=True)
class Steady:
    ages: list[float]
    """Milliseconds, of each job."""
    transactions: float
    """Per job, besides its enqueue."""


def measure(server: Server, rate: float, seconds: float) -> Steady:
    with server.no_autovacuum():
        idle = _start_and_stop(server)
        with server.database() as dsn:
            with Worker(dsn) as worker:
                time.sleep(REST)
                ids = asyncio.run(_enqueue_all(dsn, rate, seconds))
                with Probe(dsn) as probe:
                    await_gone(probe, worker, ids)
                    ages = [float(age) for (age,) in probe.rows(AGES)]
                    own = probe.statements
            # Backends that have ended have reported.
            others = server.commits(dsn) - own - len(ids) - idle
    return Steady(ages[WARMUP:], others / len(ids))


def _start_and_stop(server: Server) -> int:
    """Transactions of a worker that has nothing to do."""
    with server.database() as dsn:
        with Worker(dsn):
            time.sleep(REST)
        return server.commits(dsn)


async def _enqueue_all(dsn: str, rate: float, seconds: float) -> list[UUID]:
    clients = max(1, round(rate / PER_CLIENT))
    began = time.perf_counter()
    sent = await asyncio.gather(*(_enqueue(dsn, rate / clients, began + n / rate, seconds) for n in range(clients)))
    return [job for jobs in zip(*sent, strict=True) for job in jobs]


async def _enqueue(dsn: str, rate: float, began: float, seconds: float) -> list[UUID]:
    """Each job has its own time to be enqueued: a slow enqueue delays none of the later ones."""
    work = workload(dsn)
    ids = []
    for number in range(round(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        handle = await work.stamp.enqueue(sent=time.time_ns())
        ids.append(handle.id)
    await work.app.close()
    return ids
