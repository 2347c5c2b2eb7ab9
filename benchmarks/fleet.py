"""`python -m benchmarks.fleet`: from ten workers to hundreds on one PostgreSQL. What they ask of it, and when it is slower.

The workers are real ones, many in a process: each with its own lease, engine, listener and candidacy, at default settings. What a
fleet on many machines adds is the network; what it takes away is that all share two cores here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import processes
from tenure import Tenure
from tenure.chaos.pooler import PGBOUNCER, Pooler
from tenure.chaos.summary import publish, table
from tenure.embedded import EmbeddedServer
from tenure.store.link import Link
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

SIZES = (10, 50, 250, 500)
POOLED = 500
"""Larger fleets do not connect through PgBouncer: without prepared statements, two cores are too few for that."""
OWN = ("workers/renew_workers", "jobs/claim_jobs")
"""What each worker does for itself: its renewal and its poll."""

TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
OUR_LOOKS = 2

asked: Counter[str] = Counter()


@dataclass(frozen=True, slots=True)
class Measured:
    workers: int
    pooled: bool
    connections: int
    """Of PostgreSQL."""
    renewals: float
    """Per second, of the whole fleet, with nothing to do."""
    polls: float
    background: float
    """All other transactions per second, as PostgreSQL counts them: duties, surveys, looks whether a line still stands."""
    wait_p50: float
    """Milliseconds from enqueue to start, ten jobs a second."""
    wait_p99: float
    claims_per_job: float
    server_cpu: float
    """Cores that PostgreSQL uses while idle."""
    others: dict[str, float]
    """The background by statement, per second."""


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--workers", default=",".join(map(str, SIZES)), help="sizes of the fleet")
    parser.add_argument("--seconds", type=float, default=20.0, help="for which each is watched")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--publish", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args()
    _count_statements()
    rows: list[Measured] = []
    for size in map(int, options.workers.split(",")):
        for pooled in (False, True):
            if not pooled or (size <= POOLED and PGBOUNCER):
                rows.append(asyncio.run(_measure(size, options.seconds, pooled=pooled)))
                print("\n".join(_table(rows)), file=sys.stderr, flush=True)
    if options.publish:
        publish(options.publish, "fleet", "\n".join(_table(rows)))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))


def _table(rows: list[Measured]) -> list[str]:
    head = (
        "workers",
        "PgBouncer",
        "connections",
        "renewals/s",
        "polls/s",
        "other/s",
        "p50 ms",
        "p99 ms",
        "claims a job",
        "idle cores",
    )
    return table(head, [_table_row(row) for row in rows])


def _table_row(row: Measured) -> tuple[str, ...]:
    kept = ("yes" if row.pooled else "no", str(row.connections))
    # Sessions of a pooler report what they did too late for that.
    other = "-" if row.pooled else f"{row.background:.1f}"
    waits = (row.wait_p50, row.wait_p99, row.claims_per_job)
    own = (f"{row.renewals:.1f}", f"{row.polls:.1f}", other)
    return str(row.workers), *kept, *own, *(f"{value:.1f}" for value in waits), f"{row.server_cpu:.2f}"


def _count_statements() -> None:
    run = Link._run  # noqa: SLF001 - the one place through which every statement of a worker goes

    async def counted(self: Link, cursor: Any, query: Any) -> Any:
        asked[query.name] += 1
        return await run(self, cursor, query)

    Link._run = counted  # type: ignore[method-assign]  # noqa: SLF001


def watch(size: int, seconds: float) -> Measured:
    """Without a pooler."""
    _count_statements()
    return asyncio.run(_measure(size, seconds, pooled=False))


async def _measure(size: int, seconds: float, *, pooled: bool) -> Measured:
    with _server(size, pooled=pooled) as (server, dsn):
        direct = server.dsn
        await migrate(DatabaseTarget.at(direct))
        started: dict[int, float] = {}
        # One app for each: the workers of one app in one event loop would share connections.
        apps = [Tenure(dsn, pooled=pooled, listen_dsn=direct) for _ in range(1 + size)]
        client, *others = apps
        mark = _mark(client, started)
        for app in others:
            _mark(app, started)

        async with _fleet(others):
            await _settled(direct, size)
            cpu, before = _cpu(server), _one(direct, TRANSACTIONS)
            idle, took = await _counted(seconds)
            transactions = _one(direct, TRANSACTIONS) - before - OUR_LOOKS
            idle_cores = (_cpu(server) - cpu) / took
            connections = _one(direct, "select count(*) from pg_stat_activity where backend_type = 'client backend'") - 1
            waits, claims = await _trickle(mark, started, seconds)
        await client.close()
    own = sum(idle[name] for name in OWN)
    return Measured(
        workers=size,
        pooled=pooled,
        connections=connections,
        renewals=idle["workers/renew_workers"] / took,
        polls=idle["jobs/claim_jobs"] / took,
        background=(transactions - own) / took,
        wait_p50=1000 * statistics.median(waits),
        wait_p99=1000 * sorted(waits)[max(0, round(0.99 * len(waits)) - 1)],
        claims_per_job=claims / len(waits),
        server_cpu=idle_cores,
        others={name: round(count / took, 2) for name, count in idle.most_common() if name not in OWN},
    )


@contextmanager
def _server(size: int, *, pooled: bool) -> Iterator[tuple[EmbeddedServer, str]]:
    settings = {"max_connections": str(200 + 6 * size if not pooled else 200 + 2 * size), "shared_buffers": "256MB"}
    with tempfile.TemporaryDirectory(prefix="tenure-fleet-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        with EmbeddedServer(Path(folder, "home"), settings=settings) as server:
            if not pooled:
                yield server, server.dsn
                return
            pooler = Pooler(server.dsn, Path(folder), size=20, clients=10 * size + 100)
            pooler.start()
            try:
                while not pooler.answers:
                    time.sleep(0.05)
                yield server, pooler.dsn
            finally:
                pooler.kill()


def _mark(app: Tenure, started: dict[int, float]) -> Any:
    @app.job(name="mark")
    async def mark(n: int) -> None:
        started[n] = time.perf_counter()

    return mark


@asynccontextmanager
async def _fleet(apps: Sequence[Tenure]) -> AsyncIterator[None]:
    workers = [app.worker() for app in apps]
    for start in range(0, len(workers), 20):
        await asyncio.gather(*(worker.start() for worker in workers[start : start + 20]))
    try:
        yield
    finally:
        await asyncio.gather(*(worker.stop(0) for worker in workers))


async def _settled(dsn: str, size: int) -> None:
    """All are there, and idle for so long that they poll as slowly as they ever will."""
    await _until(lambda: _one(dsn, "select count(*) from tenure.workers where expires_at > clock_timestamp()") == size)
    await asyncio.sleep(15)


async def _until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - the truth is in another process
        await asyncio.sleep(0.2)


async def _counted(seconds: float) -> tuple[Counter[str], float]:
    before, began = Counter(asked), time.perf_counter()
    await asyncio.sleep(seconds)
    return Counter(asked) - before, time.perf_counter() - began


async def _trickle(mark: Any, started: dict[int, float], seconds: float) -> tuple[list[float], int]:
    """Ten jobs a second, one by one."""
    sent: dict[int, float] = {}
    claims = asked["jobs/claim_jobs"]
    for n in range(int(10 * seconds)):
        sent[n] = time.perf_counter()
        await mark.enqueue(n)
        await asyncio.sleep(random.uniform(0.05, 0.15))
    await _until(lambda: len(started) == len(sent))
    return [started[n] - sent[n] for n in sent], asked["jobs/claim_jobs"] - claims


def _one(dsn: str, statement: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(value,)] = connection.execute(statement.encode()).fetchall()
        return int(value)


def _cpu(server: EmbeddedServer) -> float:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        [(pid,)] = connection.execute("select pg_backend_pid()").fetchall()
        postmaster = processes.parent_of(pid, "postgres")
        return 0.0 if postmaster is None else processes.cpu_of_family(postmaster)


if __name__ == "__main__":
    main()
