"""(s) What Tenure costs before it does anything: memory of an idle worker, and the time of its import."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.server import Server
from benchmarks.workers import Worker

REST = 3.0  # seconds for the worker to become idle
TIMES = 9  # the median counts

IMPORT = """
import psycopg, psycopg_pool, time
began = time.perf_counter()
from tenure import Tenure
print(time.perf_counter() - began)
"""


def memory(server: Server) -> float:
    """Megabytes of a supervisor and one child at default settings."""
    with server.database() as dsn, Worker(dsn) as worker:
        time.sleep(REST)
        return worker.memory() / 2**20


def import_time() -> float:
    """Milliseconds of `from tenure import Tenure`, where psycopg is imported already."""
    took = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(TIMES)]
    return statistics.median(took) * 1000
