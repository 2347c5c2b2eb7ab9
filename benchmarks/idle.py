"""(h) What a worker asks of PostgreSQL while there is nothing to do."""

from __future__ import annotations

import time

from benchmarks.server import Server
from benchmarks.workers import Worker


def measure(server: Server, warmup: float, seconds: float) -> float:
    """Statements a second. The counts are read from another database, so that the looks are not among them."""
    with server.no_autovacuum(), server.database() as dsn, Worker(dsn):
        time.sleep(warmup)
        before, began = server.commits(dsn), time.perf_counter()
        time.sleep(seconds)
        after, ended = server.commits(dsn), time.perf_counter()
    return (after - before) / (ended - began)
