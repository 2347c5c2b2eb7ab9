"""The same drain, beside more and more rows of one sort."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import burdens, drain
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker

QUEUES = """
    insert into tenure.jobs (id, state, position, kind, queue)
    select gen_random_uuid(), 'pending', nextval('tenure.job_position'), 'noop', 'queue_' || n %% 1000
      from generate_series(1, %s) as n"""

KEYS = """
    insert into tenure.keys (kind, key, scope, job_id, digest)
    select 'noop', 'order-' || gen_random_uuid(), 'forever', gen_random_uuid(), tenure.input_digest('{}')
      from generate_series(1, %s) as n"""

# Ids rise with each call, as real ones do; the days are those that have partitions.
FINISHED = burdens.FINISHED.replace(
    "lpad(to_hex(n), 32, '0')", "lpad(to_hex(n + (select count(*) from tenure.history)), 32, '0')"
)


@dataclass(frozen=True)
class Stock:
    name: str
    title: str
    across: str
    statement: str
    sizes: tuple[int, ...]


STOCKS = (
    Stock("finished", "Drain beside finished jobs", "finished jobs", FINISHED, (0, 1_000_000, 2_500_000, 5_000_000, 10_000_000)),
    Stock("scheduled", "Drain beside scheduled jobs", "scheduled jobs", burdens.SCHEDULED, (0, 250_000, 500_000, 1_000_000)),
    Stock("queues", "Drain beside 1,000 other queues", "pending jobs in them", QUEUES, (0, 250_000, 500_000, 1_000_000)),
    Stock("unknown", "Drain beside jobs of unknown kinds", "such jobs", burdens.UNKNOWN, (0, 100_000, 250_000, 500_000)),
    Stock("keys", "Drain beside keys kept forever", "keys", KEYS, (0, 25_000, 50_000, 100_000)),
)  # fmt: skip


def measure(server: Server, stock: Stock, jobs: int, rounds: int, share: float) -> Iterator[tuple[float, float]]:
    """(rows, jobs per second): the median of a few rounds."""
    with server.database() as dsn:
        there = 0
        for size in (round(size * share) for size in stock.sizes):
            with Probe(dsn) as probe:
                if size > there:
                    probe.rows(stock.statement, size - there)
            there = size
            burdens.tidy(dsn)
            with Worker(dsn, concurrency=400) as worker:
                yield size, statistics.median(drain.measure(server, dsn, worker, jobs).rate for _ in range(rounds))


def behind_snapshot(server: Server, jobs: int, share: float) -> Iterator[tuple[float, float]]:
    """(jobs finished since a snapshot was taken that is still held, jobs per second)."""
    with server.database() as dsn, burdens.held_snapshot(dsn), Worker(dsn, concurrency=400) as worker:
        gone = 0
        while gone <= 1_000_000 * share:
            drained = drain.measure(server, dsn, worker, jobs)
            yield gone, drained.rate
            gone += jobs
