"""`python -m benchmarks.connections`: how many connections workers hold, as PostgreSQL counts them, idle and under load.

Real `tenure worker` processes at default settings, one of them the leader. Their handlers open no connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.jobs import workload
from benchmarks.server import Probe
from benchmarks.workers import Worker
from tenure.chaos.summary import publish, table
from tenure.embedded import EmbeddedServer
from tenure.store.migrator import migrate
from tenure.store.target import DatabaseTarget

CASES = ((1, 1), (1, 2), (1, 4), (20, 1))
"""Workers, and processes of each."""

OURS = """select application_name from pg_stat_activity
           where backend_type = 'client backend' and application_name not in ('benchmark', 'tenure enqueue', 'tenure wakeups')"""
"""Without this script's own connections."""

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Measured:
    workers: int
    processes: int
    idle: int
    most: int
    """The most that were seen at a time under load."""
    names: dict[str, int]
    """Those of the busiest moment, by what they are for."""


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.connections", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="the load")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--publish", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args()
    rows = [_measure(workers, processes, options.jobs) for workers, processes in CASES]
    if options.publish:
        publish(options.publish, "connections", "\n".join(_table(rows)))
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.json else "\n".join(_table(rows)))


def _table(rows: Sequence[Measured]) -> list[str]:
    head = ("workers", "processes of each", "idle", "most under load", "which")
    return table(head, [(r.workers, r.processes, r.idle, r.most, _which(r.names)) for r in rows])


def _which(names: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.removeprefix('tenure ')}" for name, count in sorted(names.items()))


def _measure(workers: int, processes: int, jobs: int) -> Measured:
    print(f"{workers} workers with {processes} processes each", file=sys.stderr, flush=True)
    with _database() as dsn, ExitStack() as stack, Probe(dsn) as probe:
        for _ in range(workers):
            stack.enter_context(Worker(dsn, children=processes))
        _until(lambda: probe.one("select count(*) from tenure.leases where expires_at > clock_timestamp()") >= 6)
        time.sleep(10)  # the tests and elections after the start are over
        idle = Counter(name for (name,) in probe.rows(OURS))
        most = _busiest(probe, dsn, jobs)
    return Measured(workers, processes, idle.total(), most.total(), dict(most))


def _busiest(probe: Probe, dsn: str, jobs: int) -> Counter[str]:
    asyncio.run(_load(dsn, jobs))
    most: Counter[str] = Counter()
    while probe.one("select exists (select from tenure.jobs)"):
        seen = Counter(name for (name,) in probe.rows(OURS))
        most = max(most, seen, key=Counter.total)
        time.sleep(0.01)
    return most


async def _load(dsn: str, jobs: int) -> None:
    work = workload(dsn)
    await work.app.enqueue_many([work.stamp.call(sent=time.time_ns()) for _ in range(jobs)])
    await work.app.close()


@contextmanager
def _database() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tenure-connections-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        with EmbeddedServer(Path(folder, "home"), settings={"max_connections": "300"}) as server:
            asyncio.run(migrate(DatabaseTarget.at(server.dsn)))
            yield server.dsn


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)


if __name__ == "__main__":
    main()
