"""(e) and (f): the same drain in a database that carries a burden."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from benchmarks import drain
from benchmarks.drain import Drain, await_gone, enqueue_jobs
from benchmarks.server import Probe, Server
from benchmarks.workers import Worker

SCHEDULED = """
    insert into tenure.jobs (id, state, run_at, kind)
    select gen_random_uuid(), 'scheduled', now() + interval '1 year' + n * interval '1 second', 'noop'
      from generate_series(1, %s) as n"""

UNKNOWN = """
    insert into tenure.jobs (id, state, position, kind)
    select gen_random_uuid(), 'pending', nextval('tenure.job_position'), 'unknown_' || n %% 5
      from generate_series(1, %s) as n"""

# Ids rise with time, as real ones do; the days are those that have partitions: today and the next week.
FINISHED = """
    insert into tenure.history (id, fence, enqueued_at, started_at, finished_at, attempt, max_attempts, priority, crashes,
           state, kind, queue, input)
    select lpad(to_hex(n), 32, '0')::uuid, 1, now(), now(), t.at, 1, 3, 50, 0,
           'completed', 'noop', 'default', '{}'
      from (select n, date_trunc('day', now(), 'UTC') + n %% 8 * interval '1 day' from generate_series(1, %s) as n) as t(n, at)"""


def behind_snapshot(server: Server, jobs: int, gone_through: int, concurrency: int) -> tuple[Drain, Drain]:
    """By the worker that has lived through it all, and by one that is started then."""
    with server.database() as dsn, held_snapshot(dsn):
        with Worker(dsn, concurrency=concurrency) as worker:
            _go_through(dsn, worker, gone_through)
            _visit(dsn)
            lived = drain.measure(server, dsn, worker, jobs)
        _visit(dsn)
        with Worker(dsn, concurrency=concurrency) as worker:
            fresh = drain.measure(server, dsn, worker, jobs)
    return lived, fresh


@contextmanager
def laden(server: Server, statement: str, count: int) -> Iterator[str]:
    with server.database() as dsn:
        with Probe(dsn) as probe:
            probe.rows(statement, count)
        tidy(dsn)
        server.checkpoint()
        yield dsn


def beside_burden(server: Server, dsn: str, jobs: int, concurrency: int) -> Drain:
    with Worker(dsn, concurrency=concurrency) as worker:
        drained = drain.measure(server, dsn, worker, jobs)
    tidy(dsn)
    return drained


def tidy(dsn: str) -> None:
    """What autovacuum would do later, possibly during a measurement."""
    with Probe(dsn) as probe:
        probe.rows("vacuum (freeze, analyze) tenure.jobs, tenure.history")


def _visit(dsn: str) -> None:
    """What autovacuum does once a minute. It finds no live row and can remove none: plans must bear such statistics."""
    with Probe(dsn) as probe:
        probe.rows("vacuum (analyze) tenure.jobs")


@contextmanager
def held_snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from tenure.jobs")
        yield
        connection.rollback()


def _go_through(dsn: str, worker: Worker, count: int) -> None:
    ids = asyncio.run(enqueue_jobs(dsn, count))
    with Probe(dsn) as probe:
        await_gone(probe, worker, ids)
